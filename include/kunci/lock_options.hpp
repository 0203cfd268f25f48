#pragma once

#include <kunci/time.hpp>

#include <chrono>
#include <optional>
#include <stop_token>

namespace kunci {

/// How one lock is taken; an aggregate for designated initialisers:
/// `locks.lock("k", {.ttl = 10s, .wait_timeout = 2s})`. Every duration of `std::chrono` will do.
/// Values that make no sense are refused with `std::invalid_argument` before anything is sent.
struct LockOptions {
    /// How long the lock lives in Redis without a refresh: so long is everybody locked out when the holder
    /// dies. From 3 ms (less leaves no validity after the clocks' allowance) to 100 years; rounded up to
    /// whole milliseconds.
    TimeSpan ttl = std::chrono::seconds{30};

    /// How long to wait for a lock that somebody else holds, and for a server that cannot answer now. 0: try
    /// once. `TimeSpan::max()`: without limit. However short it is, the first try has 100 ms; and `lock` and
    /// `acquire` may take one more command to tell how long the holder's key lives on.
    TimeSpan wait_timeout = std::chrono::nanoseconds{0};

    /// While waiting, the longest time between two looks at the lock; each is shortened at random by up to
    /// half, so that waiters do not march in step.
    TimeSpan retry_interval = std::chrono::milliseconds{50};

    /// Whether a guard keeps the lock alive in the background, for as long as it lives. Without it, the
    /// guard's lease ends after the TTL. Only guards have a refresher, a bare `LockToken` has none.
    bool auto_refresh = true;

    /// When a guard stops refreshing: the longest a stuck holder can keep the lock is this and one TTL.
    /// None: for as long as the guard lives.
    std::optional<TimeSpan> max_hold = std::nullopt;

    /// Ends the wait, and only the wait, when a stop is requested: `WaitCancelled` is thrown at once, or, if a
    /// command is under way, when that has ended.
    std::stop_token cancel = {};
};

}  // namespace kunci
