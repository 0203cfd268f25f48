#pragma once

#include <kunci/connection/command.hpp>
#include <kunci/connection/reply.hpp>

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace kunci::test {

/// A blocking Redis client of the tests' own, so that a test never judges the library by the library.
/// Every wait is bounded by `patience`; whatever goes wrong throws `std::runtime_error`. One thread at a
/// time.
class RawClient {
  public:
    static constexpr std::chrono::seconds patience{10};

    /// Connects to 127.0.0.1.
    [[nodiscard]] static RawClient tcp(int port) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(static_cast<std::uint16_t>(port));
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        return RawClient{AF_INET, reinterpret_cast<const sockaddr*>(&address), sizeof address};
    }

    [[nodiscard]] static RawClient unix_socket(std::string_view path) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        if (path.size() >= sizeof address.sun_path) throw std::runtime_error("the socket's path is too long");
        std::memcpy(address.sun_path, path.data(), path.size());
        return RawClient{AF_UNIX, reinterpret_cast<const sockaddr*>(&address), sizeof address};
    }

    RawClient(RawClient&& other) noexcept
        : fd_{std::exchange(other.fd_, -1)}, received_{std::move(other.received_)} {}
    RawClient& operator=(RawClient&& other) noexcept {
        std::swap(fd_, other.fd_);
        std::swap(received_, other.received_);
        return *this;
    }
    ~RawClient() {
        if (fd_ >= 0) ::close(fd_);
    }

    Reply command(std::initializer_list<std::string_view> arguments) {
        send(arguments);
        return read_reply();
    }
    Reply command(const std::vector<std::string>& arguments) {
        send(arguments);
        return read_reply();
    }
    Reply command(const Command& command) {
        std::string bytes{command.header().view()};
        send_bytes(bytes.append(command.body()));
        return read_reply();
    }

    /// Sends a command without reading its reply.
    template <typename Arguments>
    void send(const Arguments& arguments) {
        std::string bytes = "*" + std::to_string(arguments.size()) + "\r\n";
        for (const std::string_view argument : arguments) {
            bytes.append("$").append(std::to_string(argument.size())).append("\r\n");
            bytes.append(argument).append("\r\n");
        }
        send_bytes(bytes);
    }

    /// Sends any bytes as they are.
    void send_bytes(std::string_view bytes) {
        const auto deadline = std::chrono::steady_clock::now() + patience;
        while (!bytes.empty()) {
            const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (sent > 0) {
                bytes.remove_prefix(static_cast<std::size_t>(sent));
            } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
                await(POLLOUT, deadline);
            } else if (errno != EINTR) {
                fail("send");
            }
        }
    }

    /// The next reply of the server.
    Reply read_reply() { return read_reply(std::chrono::steady_clock::now() + patience); }

    [[nodiscard]] int native_handle() const noexcept { return fd_; }

  private:
    using Instant = std::chrono::steady_clock::time_point;

    RawClient(int family, const sockaddr* address, socklen_t length)
        : fd_{::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)} {
        if (fd_ < 0) fail("socket");
        try {
            connect(address, length);
        } catch (...) {
            ::close(fd_);
            throw;
        }
    }

    void connect(const sockaddr* address, socklen_t length) {
        if (::connect(fd_, address, length) == 0) return;
        if (errno != EINPROGRESS) fail("connect");
        await(POLLOUT, std::chrono::steady_clock::now() + patience);
        int error = 0;
        socklen_t size = sizeof error;
        ::getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size);
        errno = error;
        if (error != 0) fail("connect");
    }

    [[noreturn]] static void fail(const std::string& call) {
        throw std::runtime_error("raw client: " + call + ": " + std::generic_category().message(errno));
    }

    void await(short event, Instant deadline) const {
        pollfd interest{fd_, event, 0};
        while (true) {
            const auto left =
                std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
            if (left.count() <= 0) throw std::runtime_error("raw client: the server did not answer in time");
            const int ready = ::poll(&interest, 1, static_cast<int>(left.count()));
            if (ready > 0) return;
            if (ready < 0 && errno != EINTR) fail("poll");
        }
    }

    void receive_more(Instant deadline) {
        char buffer[65536];
        while (true) {
            const ssize_t got = ::recv(fd_, buffer, sizeof buffer, 0);
            if (got > 0) {
                received_.append(buffer, static_cast<std::size_t>(got));
                return;
            }
            if (got == 0) throw std::runtime_error("raw client: the server closed the connection");
            if (errno == EAGAIN || errno == EWOULDBLOCK) {
                await(POLLIN, deadline);
            } else if (errno != EINTR) {
                fail("recv");
            }
        }
    }

    std::string read_line(Instant deadline) {
        std::size_t end = 0;
        while ((end = received_.find("\r\n", position_)) == std::string::npos) receive_more(deadline);
        std::string line = received_.substr(position_, end - position_);
        position_ = end + 2;
        return line;
    }

    std::string read_bytes(std::size_t count, Instant deadline) {
        while (received_.size() - position_ < count + 2) receive_more(deadline);
        std::string bytes = received_.substr(position_, count);
        position_ += count + 2;
        return bytes;
    }

    Reply read_reply(Instant deadline) {
        Reply reply = read_element(deadline);
        received_.erase(0, std::exchange(position_, 0));
        return reply;
    }

    Reply read_element(Instant deadline) {
        const std::string line = read_line(deadline);
        const std::string rest = line.empty() ? std::string{} : line.substr(1);
        switch (line.empty() ? '\0' : line.front()) {
            case '+':
                return Reply::status(rest);
            case '-':
                return Reply::error(rest);
            case ':':
                return Reply::integer(number(rest));
            case '$':
                if (number(rest) < 0) return Reply::nil();
                return Reply::string(read_bytes(static_cast<std::size_t>(number(rest)), deadline));
            case '*':
                if (number(rest) < 0) return Reply::nil();
                return read_array(static_cast<std::size_t>(number(rest)), deadline);
            default:
                throw std::runtime_error("raw client: not RESP2: " + line);
        }
    }

    Reply read_array(std::size_t count, Instant deadline) {
        std::vector<Reply> elements;
        for (std::size_t i = 0; i < count; ++i) elements.push_back(read_element(deadline));
        return Reply::array(std::move(elements));
    }

    static std::int64_t number(const std::string& text) {
        std::int64_t value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error != std::errc{} || end != text.data() + text.size()) {
            throw std::runtime_error("raw client: not a number: " + text);
        }
        return value;
    }

    int fd_;
    std::string received_;
    std::size_t position_ = 0;  // what lies before it in received_ belongs to the reply being read
};

/// A reply for a human: strings, statuses and errors as they are, integers in decimal, nil as "(nil)", the
/// elements of an array on a line each.
[[nodiscard]] inline std::string to_text(const Reply& reply) {
    switch (reply.kind()) {
        case Reply::Kind::nil:
            return "(nil)";
        case Reply::Kind::integer:
            return std::to_string(reply.integer());
        case Reply::Kind::array: {
            std::string lines;
            for (const Reply& element : reply.elements()) {
                if (!lines.empty()) lines += '\n';
                lines += to_text(element);
            }
            return lines;
        }
        case Reply::Kind::status:
        case Reply::Kind::string:
        case Reply::Kind::error:
            break;
    }
    return reply.text();
}

}  // namespace kunci::test
