// Any client library can carry the locks: here a home-made one on a bare socket, which opens a connection for
// every command. That is slow, and makes the hardest requirement easy: no reply can ever be read by the wrong
// call. See include/kunci/connection/connection.hpp for all that is required.
#include <kunci/kunci.hpp>

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

using namespace std::chrono_literals;

namespace {

class Socket {
  public:
    /// `host` is an address: a look-up of names would not keep to any deadline.
    Socket(const std::string& host, const std::string& port, kunci::Deadline deadline) {
        addrinfo hints{};
        hints.ai_socktype = SOCK_STREAM;
        hints.ai_flags = AI_NUMERICHOST;
        addrinfo* found = nullptr;
        if (::getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) return;
        const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses{found, ::freeaddrinfo};
        fd_ = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        limit_writing(deadline);
        connected_ = ::connect(fd_, found->ai_addr, found->ai_addrlen) == 0;
    }
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;
    ~Socket() {
        if (fd_ >= 0) ::close(fd_);
    }

    [[nodiscard]] bool connected() const { return connected_; }

    [[nodiscard]] bool send(std::string_view bytes) const {
        return ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
    }

    /// Appends what comes; false if nothing came by the deadline, or nothing will.
    [[nodiscard]] bool receive(std::string& bytes, kunci::Deadline deadline) const {
        const auto left = kunci::saturating_until(kunci::SteadyClock::now(), deadline);
        pollfd readable{fd_, POLLIN, 0};
        if (::poll(&readable, 1,
                   static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count())) <= 0) {
            return false;
        }
        std::array<char, 4096> buffer{};
        const ssize_t got = ::recv(fd_, buffer.data(), buffer.size(), 0);
        if (got > 0) bytes.append(buffer.data(), static_cast<std::size_t>(got));
        return got > 0;
    }

  private:
    // On Linux this bounds connect() as well as send().
    void limit_writing(kunci::Deadline deadline) const {
        const auto left = std::max<kunci::Duration>(
            kunci::saturating_until(kunci::SteadyClock::now(), deadline), std::chrono::microseconds{1});
        const timeval limit{
            std::chrono::floor<std::chrono::seconds>(left).count(),
            std::chrono::ceil<std::chrono::microseconds>(left % std::chrono::seconds{1}).count() % 1'000'000};
        ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    }

    int fd_ = -1;
    bool connected_ = false;
};

/// Reads one reply from the front of `bytes`; empty if it is not complete yet.
std::optional<kunci::Reply> parse(std::string_view& bytes) {
    const auto end = bytes.find("\r\n");
    if (end == std::string_view::npos) return std::nullopt;
    const char type = bytes[0];
    const std::string_view line = bytes.substr(1, end - 1);
    long long number = 0;
    std::from_chars(line.data(), line.data() + line.size(), number);
    bytes.remove_prefix(end + 2);
    if (type == '+') return kunci::Reply::status(std::string{line});
    if (type == '-') return kunci::Reply::error(std::string{line});
    if (type == ':') return kunci::Reply::integer(number);
    if (number < 0) return kunci::Reply::nil();
    const auto length = static_cast<std::size_t>(number);
    if (type == '$') {
        if (bytes.size() < length + 2) return std::nullopt;
        std::string text{bytes.substr(0, length)};
        bytes.remove_prefix(length + 2);
        return kunci::Reply::string(std::move(text));
    }
    std::vector<kunci::Reply> elements;
    while (elements.size() < length) {
        auto element = parse(bytes);
        if (!element) return std::nullopt;
        elements.push_back(*std::move(element));
    }
    return kunci::Reply::array(std::move(elements));
}

// [own_connection]
class BareConnection {
  public:
    BareConnection(std::string host, std::string port) : host_{std::move(host)}, port_{std::move(port)} {}

    kunci::Outcome execute(const kunci::Command& command, kunci::Deadline deadline) {
        const Socket socket{host_, port_, deadline};
        if (!socket.connected()) {
            return kunci::Fault::not_sent(kunci::Errc::unreachable, host_ + ": cannot connect");
        }
        // From the first byte on, whatever goes wrong: the command may have been executed.
        const std::string request = std::string{command.header().view()} + std::string{command.body()};
        if (!socket.send(request)) return kunci::Fault::maybe_executed(host_ + ": connection lost");
        std::string received;
        while (socket.receive(received, deadline)) {
            std::string_view rest = received;
            if (auto reply = parse(rest)) return *std::move(reply);  // a server error is a reply, too
        }
        return kunci::Fault::maybe_executed(host_ + ": no answer in time");
    }

  private:
    std::string host_;
    std::string port_;
};

static_assert(kunci::Connection<BareConnection>);
// [/own_connection]

/// "redis://127.0.0.1:6379/0" to "127.0.0.1" and "6379".
BareConnection connect_to(std::string url) {
    url.erase(0, url.find("//") + 2);
    url.resize(url.find('/'));
    const auto colon = url.find(':');
    return {url.substr(0, colon), url.substr(colon + 1)};
}

}  // namespace

int main(int argc, char** argv) {
    kunci::DistributedLock locks{connect_to(argc > 1 ? argv[1] : "redis://127.0.0.1:6379/0")};
    auto guard = locks.try_lock("own-connection", {.ttl = 5s});
    const bool second = locks.try_lock("own-connection").has_value();
    const bool released = guard && guard->release();
    std::printf("locked: %d, locked twice: %d, released: %d\n", guard.has_value(), second, released);
    return guard && !second && released ? 0 : 1;
}
