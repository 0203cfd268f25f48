#pragma once

#include "relay_lane.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <mutex>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace kunci::test {

/// A TCP relay on loopback between clients and one Redis server, whose links can be disturbed. What is set
/// applies to open and to future connections, until `heal()`. Thread-safe. It understands where requests and
/// replies of RESP2 begin and end, and forwards only whole ones (`trickle` and `cut_after` then divide them).
class Relay {
  public:
    enum class Way { to_server, to_client, both };

    explicit Relay(int server_port)
        : server_port_{server_port}, wake_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)}, reservation_{bind()} {
        listen();
        thread_ = std::thread{[this] { run(); }};
    }
    Relay(const Relay&) = delete;
    Relay& operator=(const Relay&) = delete;
    ~Relay() {
        change([this] { stopping_ = true; });
        thread_.join();
        for (auto& link : links_) close(link, true);
        if (listener_ >= 0) ::close(listener_);
        ::close(reservation_);
        ::close(wake_);
    }

    [[nodiscard]] int port() const { return port_; }
    [[nodiscard]] std::string url() const { return "redis://127.0.0.1:" + std::to_string(port_) + "/0"; }

    /// Bytes wait where they are, so that TCP's own buffers fill up; none is lost.
    void hold(Way way) {
        set(way, [](Rules& rules) { rules.held = true; });
    }
    void let_go(Way way) {
        set(way, [](Rules& rules) { rules.held = false; });
    }

    /// Each message goes on so much later, in order.
    void delay(Way way, std::chrono::milliseconds least, std::chrono::milliseconds most,
               std::uint64_t seed = 1) {
        set(way, [&](Rules& rules) {
            rules.least_delay = least;
            rules.most_delay = most;
            random_.seed(seed);
        });
    }

    /// So many bytes at a time go on, no faster.
    void trickle(Way way, std::size_t bytes, std::chrono::milliseconds every) {
        set(way, [&](Rules& rules) {
            rules.trickle_bytes = bytes;
            rules.trickle_every = every;
        });
    }

    /// A black hole that keeps the connections.
    void drop(Way way) {
        set(way, [](Rules& rules) { rules.dropped = true; });
    }

    /// Swallows exactly the next `count` replies, if a command is given those to this one: it has been executed then.
    void drop_replies(int count, const std::string& command = {}) {
        change([&] { swallowed_ = {count, detail::SwallowedReplies::lower(command)}; });
    }

    /// Resets every open connection; new ones are welcome.
    void cut() {
        change([this] {
            for (auto& link : links_) link.doomed = true;
            cuts_ += links_.size();
        });
    }

    /// Once: the first connection that has carried so many bytes this way, counted from now on each, is closed
    /// right behind the last of them. 0: before its first byte.
    void cut_after(Way way, std::size_t bytes) {
        set(way, [&](Rules& rules) { rules.cut_after = bytes; });
        change([this] {
            for (auto& link : links_) {
                link.to_server.count_from_now();
                link.to_client.count_from_now();
            }
        });
    }

    /// Nobody listens on the port any more; open connections live on.
    void refuse() {
        change([this] {
            if (listener_ < 0) return;
            ::shutdown(listener_, SHUT_RDWR);  // at once: a poll() that is under way would keep it open
            ::close(std::exchange(listener_, -1));
        });
    }
    /// Listens again, on the same port.
    void accept() {
        change([this] {
            if (listener_ < 0) listen();
        });
    }

    /// Takes everything back. What was held goes on.
    void heal() {
        change([this] {
            to_server_ = {};
            to_client_ = {};
            swallowed_ = {};
            if (listener_ < 0) listen();
        });
    }

    [[nodiscard]] std::size_t open() const {
        return look([this] { return links_.size(); });
    }
    [[nodiscard]] std::size_t accepted() const {
        return look([this] { return accepted_; });
    }
    [[nodiscard]] std::size_t cuts() const {
        return look([this] { return cuts_; });
    }
    [[nodiscard]] std::size_t dropped_replies() const {
        return look([this] { return dropped_replies_; });
    }
    /// How many requests the server was sent.
    [[nodiscard]] std::size_t requests() const {
        return look([this] { return requests_; });
    }
    /// Bytes forwarded so far.
    [[nodiscard]] std::uint64_t bytes(Way way) const {
        return look([&] {
            return (way != Way::to_client ? bytes_to_server_ : 0) +
                   (way != Way::to_server ? bytes_to_client_ : 0);
        });
    }

  private:
    using Clock = detail::RelayClock;
    using Rules = detail::RelayRules;

    struct Link {
        Link(int client, int server) : to_server{client, server}, to_client{server, client} {}

        detail::RelayLane to_server;
        detail::RelayLane to_client;
        std::deque<std::string> asked;  // the names of the commands without a reply
        bool doomed = false;            // to be reset
        bool over = false;              // to be closed
    };

    template <typename Action>
    void change(Action action) {
        {
            const std::lock_guard lock{mutex_};
            action();
        }
        const std::uint64_t one = 1;
        [[maybe_unused]] const auto written = ::write(wake_, &one, sizeof one);
    }
    template <typename Action>
    void set(Way way, Action action) {
        change([&] {
            if (way != Way::to_client) action(to_server_);
            if (way != Way::to_server) action(to_client_);
        });
    }
    template <typename Question>
    [[nodiscard]] std::invoke_result_t<Question> look(Question question) const {
        const std::lock_guard lock{mutex_};
        return question();
    }

    void listen() {
        listener_ = bind();
        constexpr int backlog = 256;
        if (::listen(listener_, backlog) != 0) throw std::runtime_error("relay: cannot listen");
    }

    /// A socket with the relay's port, or, the first time, with one that is free.
    [[nodiscard]] int bind() {
        const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        const int on = 1;
        ::setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
        sockaddr_in address = loopback(port_);
        socklen_t size = sizeof address;
        auto* generic = reinterpret_cast<sockaddr*>(&address);
        if (::bind(fd, generic, size) != 0 || ::getsockname(fd, generic, &size) != 0) {
            ::close(fd);
            throw std::runtime_error("relay: cannot have port " + std::to_string(port_));
        }
        port_ = ntohs(address.sin_port);
        return fd;
    }

    [[nodiscard]] static sockaddr_in loopback(int port) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        address.sin_port = htons(static_cast<std::uint16_t>(port));
        return address;
    }

    void run() {
        std::unique_lock lock{mutex_};
        while (!stopping_) {
            std::vector<pollfd> interests = interests_now();
            const int timeout = time_to_next();
            lock.unlock();
            ::poll(interests.data(), interests.size(), timeout);
            lock.lock();
            std::uint64_t ignored = 0;
            [[maybe_unused]] const auto got = ::read(wake_, &ignored, sizeof ignored);
            welcome();
            for (auto& link : links_) move(link);
            std::erase_if(links_, [](Link& link) {
                if (!link.doomed && !link.over) return false;
                close(link, link.doomed);
                return true;
            });
        }
    }

    [[nodiscard]] std::vector<pollfd> interests_now() const {
        std::vector<pollfd> interests{{wake_, POLLIN, 0}};
        if (listener_ >= 0) interests.push_back({listener_, POLLIN, 0});
        const auto now = Clock::now();
        for (const auto& link : links_) {
            add_interests(interests, link.to_server, to_server_, now);
            add_interests(interests, link.to_client, to_client_, now);
        }
        return interests;
    }

    static void add_interests(std::vector<pollfd>& interests, const detail::RelayLane& lane,
                              const Rules& rules, Clock::time_point now) {
        if (lane.wants_to_read(rules)) interests.push_back({lane.source(), POLLIN, 0});
        const auto at = lane.next_write(rules);
        if (at && *at <= now) interests.push_back({lane.sink(), POLLOUT, 0});
    }

    /// For poll(), in milliseconds.
    [[nodiscard]] int time_to_next() const {
        constexpr std::chrono::milliseconds longest{1000};
        auto left = longest;
        const auto now = Clock::now();
        const auto consider = [&](std::optional<Clock::time_point> at) {
            if (at && *at > now) {
                left = std::min(left, std::chrono::ceil<std::chrono::milliseconds>(*at - now));
            }
        };
        for (const auto& link : links_) {
            consider(link.to_server.next_write(to_server_));
            consider(link.to_client.next_write(to_client_));
        }
        return static_cast<int>(left.count());
    }

    void welcome() {
        while (listener_ >= 0) {
            const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
            if (client < 0) return;
            ++accepted_;
            const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
            const sockaddr_in address = loopback(server_port_);
            const bool connected =
                ::connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
            const int on = 1;
            for (const int fd : {client, server}) ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            links_.emplace_back(client, server);
            links_.back().doomed = !connected;
        }
    }

    void move(Link& link) {
        if (link.doomed) return;
        const auto now = Clock::now();
        if (link.to_server.wants_to_read(to_server_)) {
            link.to_server.read(to_server_, now + some_delay(to_server_), [&](const std::string& request) {
                if (to_server_.dropped) return false;
                link.asked.push_back(RespFramer::name_of(request));
                ++requests_;
                return true;
            });
        }
        if (link.to_client.wants_to_read(to_client_)) {
            link.to_client.read(to_client_, now + some_delay(to_client_),
                                [&](const std::string&) { return passes(link); });
        }
        bool cut = false;
        bytes_to_server_ += link.to_server.write(to_server_, now, cut);
        if (std::exchange(cut, false)) return end(link, to_server_);
        bytes_to_client_ += link.to_client.write(to_client_, now, cut);
        if (cut) return end(link, to_client_);
        link.doomed = link.to_server.broken() || link.to_client.broken();
        link.over = link.to_server.finished() && link.to_client.finished();
    }

    void end(Link& link, Rules& rules) {
        rules.cut_after.reset();
        link.over = true;
        ++cuts_;
    }

    [[nodiscard]] bool passes(Link& link) {
        std::string name;
        if (!link.asked.empty()) {
            name = std::move(link.asked.front());
            link.asked.pop_front();
        }
        if (!swallowed_.takes(name)) return true;
        ++dropped_replies_;
        return false;
    }

    [[nodiscard]] std::chrono::milliseconds some_delay(const Rules& rules) {
        if (rules.most_delay <= rules.least_delay) return rules.least_delay;
        std::uniform_int_distribution<std::chrono::milliseconds::rep> spread{rules.least_delay.count(),
                                                                             rules.most_delay.count()};
        return std::chrono::milliseconds{spread(random_)};
    }

    static void close(Link& link, bool reset) {
        for (const int fd : {link.to_server.source(), link.to_server.sink()}) {
            const linger at_once{1, 0};
            if (reset) ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
            ::close(fd);
        }
    }

    const int server_port_;
    const int wake_;
    int port_ = 0;
    const int reservation_;  // never listens: nobody else gets the port while connections are refused
    mutable std::mutex mutex_;
    // Everything below is guarded by mutex_, which the thread holds unless it waits.
    int listener_ = -1;
    std::list<Link> links_;
    Rules to_server_;
    Rules to_client_;
    detail::SwallowedReplies swallowed_;
    std::mt19937_64 random_{1};
    bool stopping_ = false;
    std::size_t accepted_ = 0;
    std::size_t cuts_ = 0;
    std::size_t dropped_replies_ = 0;
    std::size_t requests_ = 0;
    std::uint64_t bytes_to_server_ = 0;
    std::uint64_t bytes_to_client_ = 0;
    std::thread thread_;
};

}  // namespace kunci::test
