#pragma once

#include <errno.h>
#include <sys/random.h>

#include <array>
#include <cstddef>
#include <string_view>
#include <system_error>

namespace kunci::detail {

/// Fills `bytes` from the operating system's generator: no state of ours that a fork could copy or a seed
/// could weaken. Throws `std::system_error` if there is none. Thread-safe.
template <std::size_t N>
void fill_random(std::array<unsigned char, N>& bytes) {
    static_assert(N <= 256, "up to 256 bytes are delivered whole, whatever signals arrive: getrandom(2)");
    while (::getrandom(bytes.data(), N, 0) != static_cast<ssize_t>(N)) {
        if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "kunci: getrandom");
    }
}

/// The secret of one tenure: 128 random bits, as 32 hexadecimal digits.
class RandomToken {
  public:
    RandomToken() {
        std::array<unsigned char, 16> bytes;  // NOLINT: filled next
        fill_random(bytes);
        constexpr std::string_view hex = "0123456789abcdef";
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            digits_[2 * i] = hex[bytes[i] >> 4U];
            digits_[2 * i + 1] = hex[bytes[i] & 15U];
        }
    }

    [[nodiscard]] std::string_view view() const noexcept { return {digits_.data(), digits_.size()}; }

  private:
    std::array<char, 32> digits_;  // NOLINT: set by the constructor
};

}  // namespace kunci::detail
