#pragma once

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace kunci::hiredis_detail {

/// One address to connect to. A value.
class Endpoint {
  public:
    Endpoint(const sockaddr* address, socklen_t size) : size_{size} { std::memcpy(&storage_, address, size); }

    /// Throws `std::invalid_argument` if the operating system has no room for the path.
    [[nodiscard]] static Endpoint unix_socket(const std::string& path) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        if (path.size() >= sizeof address.sun_path) {
            throw std::invalid_argument("kunci: the path of a Unix socket may have " +
                                        std::to_string(sizeof address.sun_path - 1) + " bytes, not " +
                                        std::to_string(path.size()));
        }
        std::memcpy(address.sun_path, path.data(), path.size());
        return Endpoint{reinterpret_cast<const sockaddr*>(&address), sizeof address};
    }

    [[nodiscard]] int family() const noexcept { return storage_.ss_family; }
    [[nodiscard]] const sockaddr* address() const noexcept {
        return reinterpret_cast<const sockaddr*>(&storage_);
    }
    [[nodiscard]] socklen_t size() const noexcept { return size_; }

  private:
    sockaddr_storage storage_{};
    socklen_t size_;
};

/// The addresses of a host, in the order in which to try them, or why there are none.
struct Addresses {
    std::vector<Endpoint> endpoints;
    std::string error;       ///< Empty if there are addresses.
    bool temporary = false;  ///< The look-up failed; it does not mean that there is no such host.
};

/// Asks getaddrinfo, which may take as long as it likes unless `flags` has AI_NUMERICHOST.
[[nodiscard]] inline Addresses get_addresses(const std::string& host, std::uint16_t port, int flags) {
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = flags | AI_NUMERICSERV;
    addrinfo* found = nullptr;
    const int failure = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
    if (failure == EAI_SYSTEM) return {{}, "name look-up: " + std::system_category().message(errno), true};
    if (failure != 0) {
        const bool temporary = failure == EAI_AGAIN || failure == EAI_MEMORY;
        return {{}, std::string{"name look-up: "} + ::gai_strerror(failure), temporary};
    }
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner{found, &::freeaddrinfo};
    Addresses addresses;
    for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
        addresses.endpoints.emplace_back(each->ai_addr, each->ai_addrlen);
    }
    return addresses;
}

}  // namespace kunci::hiredis_detail
