#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace kunci::test {

/// Listens on loopback, and answers the first bytes of every connection with the same ones, then hangs up.
class Peer {
  public:
    explicit Peer(std::string answer)
        : answer_{std::move(answer)},
          stop_{::eventfd(0, EFD_CLOEXEC)},
          listener_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        auto* generic = reinterpret_cast<sockaddr*>(&address);
        constexpr int backlog = 16;
        if (::bind(listener_, generic, size) != 0 || ::listen(listener_, backlog) != 0 ||
            ::getsockname(listener_, generic, &size) != 0) {
            throw std::runtime_error("peer: cannot listen");
        }
        port_ = ntohs(address.sin_port);
        thread_ = std::thread{[this] { serve(); }};
    }
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;
    ~Peer() {
        const std::uint64_t one = 1;
        [[maybe_unused]] const auto written = ::write(stop_, &one, sizeof one);
        thread_.join();
        ::close(listener_);
        ::close(stop_);
    }

    [[nodiscard]] int port() const { return port_; }

  private:
    /// False if it is to stop.
    [[nodiscard]] bool wait_for(int fd) const {
        std::array<pollfd, 2> interests{pollfd{stop_, POLLIN, 0}, pollfd{fd, POLLIN, 0}};
        ::poll(interests.data(), interests.size(), -1);
        return interests[0].revents == 0;
    }

    void serve() const {
        while (wait_for(listener_)) {
            const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
            std::array<char, 4096> ignored;  // NOLINT: only written to
            if (wait_for(fd) && ::recv(fd, ignored.data(), ignored.size(), 0) > 0) {
                ::send(fd, answer_.data(), answer_.size(), MSG_NOSIGNAL);
            }
            ::close(fd);
        }
    }

    const std::string answer_;
    const int stop_;
    const int listener_;
    int port_ = 0;
    std::thread thread_;
};

}  // namespace kunci::test
