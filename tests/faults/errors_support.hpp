#pragma once

#include <kunci/errc.hpp>

#include "fault_test.hpp"
#include "support/peer.hpp"
#include "support/redis_server.hpp"
#include "support/relay.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cctype>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Places where locks are asked for, and the one thing that is wrong there.
namespace kunci::test {

/// The password of every URL that has one.
inline const std::string secret = "tops3cret";

class Scene {
  public:
    Scene() = default;
    Scene(const Scene&) = delete;
    Scene& operator=(const Scene&) = delete;
    virtual ~Scene() = default;

    [[nodiscard]] virtual std::string url() const = 0;
    /// As messages name it.
    [[nodiscard]] virtual std::string address() const = 0;
    /// Whether locks can be had until `begin()`.
    [[nodiscard]] virtual bool is_sound_before() const { return false; }
    /// How many commands have come there, those of a greeting included.
    [[nodiscard]] virtual std::size_t commands() const { return 0; }
    virtual void begin() {}
    virtual void end() {}
};

/// A server behind a relay. What a fault returns ends it when it is destroyed.
class ServerScene final : public Scene {
  public:
    using Fault = std::function<std::shared_ptr<void>(ServerScene&)>;

    struct Setup {
        Fault fault = nullptr;                       ///< None: it is wrong from the beginning.
        std::vector<std::string> arguments = {};     ///< Of the server.
        std::string credentials = {};                ///< Of the URL, with their "@".
        std::string database = "/0";
    };

    explicit ServerScene(Setup setup) : setup_{std::move(setup)}, server{setup_.arguments} {}

    [[nodiscard]] std::string url() const override {
        return "redis://" + setup_.credentials + "127.0.0.1:" + std::to_string(relay.port()) + setup_.database;
    }
    [[nodiscard]] std::string address() const override {
        return "127.0.0.1:" + std::to_string(relay.port()) + setup_.database;
    }
    [[nodiscard]] bool is_sound_before() const override { return setup_.fault != nullptr; }
    [[nodiscard]] std::size_t commands() const override { return relay.requests(); }
    void begin() override {
        if (setup_.fault) fault_ = setup_.fault(*this);
    }
    void end() override { fault_.reset(); }

  private:
    Setup setup_;

  public:
    RedisServer server;
    Relay relay{server.port()};

  private:
    std::shared_ptr<void> fault_;
};

/// A listener that is no Redis; in the end it grants a lock to whoever asks again.
class PeerScene final : public Scene {
  public:
    explicit PeerScene(std::string answer, std::string database = "/0")
        : peer_{std::move(answer)}, database_{std::move(database)} {}

    [[nodiscard]] std::string url() const override { return "redis://" + address(); }
    [[nodiscard]] std::string address() const override {
        return "127.0.0.1:" + std::to_string(peer_.port()) + database_;
    }
    [[nodiscard]] std::size_t commands() const override { return peer_.asked(); }
    void end() override { peer_.answer("*2\r\n:1\r\n:-1\r\n"); }

  private:
    Peer peer_;
    std::string database_;
};

/// A name that leads nowhere.
class NowhereScene final : public Scene {
  public:
    [[nodiscard]] std::string url() const override { return "redis://:" + secret + "@" + address(); }
    [[nodiscard]] std::string address() const override { return "no-such-host.invalid:6379/0"; }
};

/// A listener that accepts nobody, and whose queue is full: the kernel does not even answer.
class FullBacklogScene final : public Scene {
  public:
    FullBacklogScene() : listener_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        auto* generic = reinterpret_cast<sockaddr*>(&address);
        if (::bind(listener_, generic, size) != 0 || ::listen(listener_, 0) != 0 ||
            ::getsockname(listener_, generic, &size) != 0) {
            throw std::runtime_error("full backlog: cannot listen");
        }
        port_ = ntohs(address.sin_port);
        while (one_more(address)) {
        }
    }
    ~FullBacklogScene() override {
        for (const int fd : queue_) ::close(fd);
        ::close(listener_);
    }

    [[nodiscard]] std::string url() const override { return "redis://" + address(); }
    [[nodiscard]] std::string address() const override {
        return "127.0.0.1:" + std::to_string(port_) + "/0";
    }

  private:
    /// Whether it was let into the queue.
    bool one_more(const sockaddr_in& address) {
        queue_.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
        ::connect(queue_.back(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
        pollfd interest{queue_.back(), POLLOUT, 0};
        constexpr int long_enough_on_loopback = 100;
        return ::poll(&interest, 1, long_enough_on_loopback) == 1;
    }

    const int listener_;
    int port_ = 0;
    std::vector<int> queue_;
};

/// A server without TLS that is spoken to with TLS.
class PlainServerScene final : public Scene {
  public:
    [[nodiscard]] std::string url() const override {
        return "rediss://:" + secret + "@127.0.0.1:" + std::to_string(server_.port());
    }
    [[nodiscard]] std::string address() const override {
        return "127.0.0.1:" + std::to_string(server_.port()) + "/0";
    }

  private:
    RedisServer server_;
};

/// One real cause of one code.
struct Trouble {
    enum class Lasting { a_while, as_long_as_we_look, for_ever };

    std::string name;
    Errc code;
    std::string code_word;  ///< Of the server; empty if it says nothing.
    std::string words;      ///< What a message must contain.
    std::function<std::unique_ptr<Scene>()> scene;
    /// `for_ever`: the library should know that waiting cannot mend it.
    Lasting lasting = Lasting::a_while;
    /// A command on a connection from before meets it, too.
    bool on_open_connections = true;
    bool spares_held_locks = false;
    std::size_t commands_per_try = 1;
};

inline void PrintTo(const Trouble& trouble, std::ostream* out) {
    *out << trouble.name;
}

/// Whether there is something in it that can only be a token: many hexadecimal digits in a row.
[[nodiscard]] inline bool shows_a_token(std::string_view text) {
    constexpr std::size_t too_many = 16;
    std::size_t in_a_row = 0;
    for (const char c : text) {
        in_a_row = std::isxdigit(static_cast<unsigned char>(c)) != 0 ? in_a_row + 1 : 0;
        if (in_a_row == too_many) return true;
    }
    return false;
}

}  // namespace kunci::test
