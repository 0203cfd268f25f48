#pragma once

#include <kunci/adapters/hiredis/endpoint.hpp>
#include <kunci/adapters/hiredis/wait.hpp>
#include <kunci/errc.hpp>
#include <kunci/time.hpp>

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace kunci::hiredis_detail {

/// What one attempt to send or to receive came to.
struct IoResult {
    enum class Status {
        done,    ///< `bytes` were moved, at least one.
        again,   ///< Nothing can be moved now: wait, then try again.
        closed,  ///< The peer has closed the stream.
        failed,  ///< The stream is broken; `error` says why.
    };

    Status status;
    std::size_t bytes = 0;
    std::string error = {};
    /// Bytes may have gone out although none is counted.
    bool in_doubt = false;

    [[nodiscard]] static IoResult done(std::size_t bytes) { return {Status::done, bytes}; }
    [[nodiscard]] static IoResult again() { return {Status::again}; }
    [[nodiscard]] static IoResult closed() { return {Status::closed}; }
    [[nodiscard]] static IoResult failed(std::string why) { return {Status::failed, 0, std::move(why)}; }
};

[[nodiscard]] inline std::string error_text(int error) {
    return std::system_category().message(error);
}

/// A connected, non-blocking stream socket: the plain form of a stream. Owns its descriptor, which no program
/// started meanwhile inherits. Raises no SIGPIPE. One thread at a time.
class Socket {
  public:
    Socket() = default;
    explicit Socket(int fd) noexcept : fd_{fd} {}
    Socket(Socket&& other) noexcept : fd_{std::exchange(other.fd_, -1)} {}
    Socket& operator=(Socket&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~Socket() {
        if (fd_ >= 0) ::close(fd_);
    }

    [[nodiscard]] int fd() const noexcept { return fd_; }

    /// Whether there may be bytes to receive that poll() does not see.
    [[nodiscard]] static constexpr bool buffers_input() noexcept { return false; }

    /// Sends as much of both pieces, one behind the other, as goes without waiting.
    [[nodiscard]] IoResult send(std::string_view first, std::string_view second) {
        std::array<iovec, 2> pieces{piece(first), piece(second)};
        msghdr message{};
        message.msg_iov = pieces.data();
        message.msg_iovlen = pieces.size();
        while (true) {
            const ssize_t sent = ::sendmsg(fd_, &message, MSG_NOSIGNAL);
            if (sent > 0) return IoResult::done(static_cast<std::size_t>(sent));
            // A signal interrupts it only before the first byte, so nothing is sent twice.
            if (sent < 0 && errno == EINTR) continue;
            if (sent == 0 || errno == EAGAIN || errno == EWOULDBLOCK) return IoResult::again();
            return IoResult::failed("send: " + error_text(errno));
        }
    }

    /// Receives what is there. REQUIRES: `size` is not 0.
    [[nodiscard]] IoResult receive(char* buffer, std::size_t size) {
        while (true) {
            const ssize_t got = ::recv(fd_, buffer, size, MSG_DONTWAIT);
            if (got > 0) return IoResult::done(static_cast<std::size_t>(got));
            if (got == 0) return IoResult::closed();
            if (errno == EINTR) continue;
            if (errno == EAGAIN || errno == EWOULDBLOCK) return IoResult::again();
            return IoResult::failed("receive: " + error_text(errno));
        }
    }

    [[nodiscard]] bool wait_to_send(Deadline deadline) const { return wait_ready(fd_, POLLOUT, deadline); }
    [[nodiscard]] bool wait_to_receive(Deadline deadline) const { return wait_ready(fd_, POLLIN, deadline); }

    /// Whether it looks sound while nothing is expected: not closed, and no bytes that nobody asked for.
    [[nodiscard]] bool is_quiet() {
        char byte = 0;
        const ssize_t got = ::recv(fd_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
        return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
    }

    /// Ends the stream such that the kernel still delivers what was sent. What has arrived is read first:
    /// closing with unread bytes would reset the connection and drop what is on its way.
    void finish() {
        std::array<char, 16 * 1024> buffer;  // NOLINT: only written to
        constexpr int most_reads = 64;       // a peer that never stops sending must not hold us
        for (int i = 0; i < most_reads; ++i) {
            if (receive(buffer.data(), buffer.size()).status != IoResult::Status::done) break;
        }
        ::shutdown(fd_, SHUT_WR);
        ::close(std::exchange(fd_, -1));
    }

  private:
    static iovec piece(std::string_view bytes) {
        return {const_cast<char*>(bytes.data()), bytes.size()};  // NOLINT: sendmsg only reads
    }

    int fd_ = -1;
};

/// What became of connecting: a socket, or the reason why there is none.
struct Connected {
    Socket socket;
    std::string error;  ///< Empty on success.
    Errc code = Errc::unreachable;
};

/// What the operating system's answer to socket() or connect() is called here.
[[nodiscard]] inline Errc code_of_connect_error(int error) {
    switch (error) {
        case ECONNREFUSED:
            return Errc::connection_refused;
        case ETIMEDOUT:
            return Errc::connect_timeout;
        case EMFILE:
        case ENFILE:
            return Errc::no_descriptors;
        default:
            return Errc::unreachable;
    }
}

/// A connection to an ephemeral port of this machine where nobody listens may meet itself: TCP then connects
/// the socket to itself, and it would echo every command as if that were a reply.
[[nodiscard]] inline bool is_connected_to_itself(int fd) {
    sockaddr_storage here{};
    sockaddr_storage there{};
    socklen_t here_size = sizeof here;
    socklen_t there_size = sizeof there;
    if (::getsockname(fd, reinterpret_cast<sockaddr*>(&here), &here_size) != 0 ||
        ::getpeername(fd, reinterpret_cast<sockaddr*>(&there), &there_size) != 0) {
        return false;
    }
    return here_size == there_size && std::memcmp(&here, &there, here_size) == 0;
}

inline void prepare_tcp(int fd) {
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

/// Connects until the deadline.
[[nodiscard]] inline Connected connect_to(const Endpoint& endpoint, Deadline deadline) {
    Socket socket{::socket(endpoint.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
    if (socket.fd() < 0) return {{}, "socket: " + error_text(errno), code_of_connect_error(errno)};
    const bool tcp = endpoint.family() != AF_UNIX;
    if (tcp) prepare_tcp(socket.fd());

    int error = ::connect(socket.fd(), endpoint.address(), endpoint.size()) == 0 ? 0 : errno;
    if (error == EINPROGRESS || error == EINTR) {  // interrupted, it goes on all the same
        if (!wait_ready(socket.fd(), POLLOUT, deadline)) {
            return {{}, "connect: no answer before the deadline", Errc::connect_timeout};
        }
        socklen_t size = sizeof error;
        if (::getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
    }
    if (error == 0 && tcp && is_connected_to_itself(socket.fd())) error = ECONNREFUSED;
    if (error != 0) return {{}, "connect: " + error_text(error), code_of_connect_error(error)};
    return {std::move(socket), {}};
}

}  // namespace kunci::hiredis_detail
