#pragma once

#include <kunci/detail/small_bytes.hpp>

#include <concepts>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

namespace kunci {

/// The longest key that Redis takes (`proto-max-bulk-len`, 512 MiB by default).
inline constexpr std::size_t max_key_length = std::size_t{512} * 1024 * 1024;

/// The key of a lock in Redis: the prefix (`lock:` unless changed) followed by the user's name of it,
/// exactly. Any bytes are allowed. A value; not thread-safe.
class LockKey {
  public:
    /// Throws `std::invalid_argument` if `key` is empty or the whole longer than `max_key_length`.
    LockKey(std::string_view prefix, std::string_view key) {
        if (key.empty()) throw std::invalid_argument("kunci: the key of a lock must not be empty");
        if (key.size() > max_key_length || prefix.size() > max_key_length - key.size()) {
            throw std::invalid_argument(
                "kunci: the key of a lock must not be longer than 512 MB, this one has " +
                std::to_string(prefix.size() + key.size()) + " bytes");
        }
        bytes_.append(prefix);
        bytes_.append(key);
    }

    /// A lock key that is complete already, as `LockToken::key()` gives it.
    [[nodiscard]] static LockKey from_complete(std::string_view lock_key) { return LockKey{{}, lock_key}; }

    [[nodiscard]] std::string_view view() const noexcept { return bytes_.view(); }

    friend bool operator==(const LockKey&, const LockKey&) = default;

  private:
    detail::SmallBytes<64> bytes_;
};

/// Splits one hot key over `stripes` locks: `striped_key("stock", 37, 16)` is "stock:5", since 37 % 16 is 5.
/// Things with different remainders no longer wait for each other, while two users of one `id` still meet at
/// the same lock. A negative `id` counts as its remainder from 0 to `stripes - 1`.
/// Everybody must use the same number of stripes. Throws `std::invalid_argument` if `stripes` is 0.
template <std::integral Id>
[[nodiscard]] std::string striped_key(std::string_view key, Id id, unsigned stripes) {
    if (stripes == 0) throw std::invalid_argument("kunci: striped_key needs at least one stripe");
    unsigned long long stripe = static_cast<unsigned long long>(id) % stripes;
    if constexpr (std::signed_integral<Id>) {
        // -1 - id cannot overflow, and walks the stripes backwards from the last.
        if (id < 0) stripe = stripes - 1 - static_cast<unsigned long long>(-1 - id) % stripes;
    }
    return std::string{key} + ':' + std::to_string(stripe);
}

}  // namespace kunci
