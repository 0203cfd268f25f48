#pragma once

#include <kunci/detail/small_bytes.hpp>
#include <kunci/lock_key.hpp>
#include <kunci/time.hpp>

#include <stdexcept>
#include <string_view>
#include <utility>

namespace kunci {

/// One tenure of a lock: the lock key, the secret token that proves it, and until when it is valid.
///
/// A plain value: it may be copied, moved to another thread, or stored as its two strings and rebuilt in
/// another process. It does nothing on destruction; whoever wants that takes a `LockGuard`. Whoever knows the
/// token can release the lock, so it belongs in no log. Not thread-safe by itself.
class LockToken {
  public:
    /// Rebuilds a tenure from its two strings: `lock_key` complete with its prefix, as `key()` gives it, and
    /// `token` as `token()` gives it. Nothing is known of its validity until it has been refreshed.
    /// Throws `std::invalid_argument` if one of them is empty, or the key is longer than `max_key_length`.
    LockToken(std::string_view lock_key, std::string_view token)
        : LockToken{LockKey::from_complete(lock_key), token, TimePoint::min()} {}

    LockToken(LockKey lock_key, std::string_view token, TimePoint valid_until)
        : key_{std::move(lock_key)}, token_{token}, valid_until_{valid_until} {
        if (token.empty()) throw std::invalid_argument("kunci: the token of a lock must not be empty");
    }

    /// The lock key in Redis, prefix included.
    [[nodiscard]] std::string_view key() const noexcept { return key_.view(); }
    /// The secret. Anybody who has it can release and refresh the lock.
    [[nodiscard]] std::string_view token() const noexcept { return token_.view(); }

    /// The instant, of the lock's clock, from which on somebody else may hold the lock.
    /// `TimePoint::min()` if that is not known: the token was rebuilt from its strings.
    [[nodiscard]] TimePoint valid_until() const noexcept { return valid_until_; }

    friend bool operator==(const LockToken& a, const LockToken& b) noexcept {
        return a.key_ == b.key_ && a.token_ == b.token_;
    }

  private:
    friend class LockOperations;

    LockKey key_;
    detail::SmallBytes<40> token_;
    TimePoint valid_until_;
    bool burnt_ = false;             // its release was asked for: it must never hold a lock again
    bool release_in_doubt_ = false;  // and had no answer
};

}  // namespace kunci
