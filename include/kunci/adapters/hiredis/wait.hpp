#pragma once

#include <kunci/time.hpp>

#include <errno.h>
#include <poll.h>

#include <algorithm>
#include <chrono>

namespace kunci::hiredis_detail {

/// What is left until the deadline, for poll(): rounded up, since rounding down would spin through the last
/// millisecond. At most a second, since poll()'s clock stands still during suspend and the deadline's does
/// not.
[[nodiscard]] inline int poll_timeout(TimePoint now, Deadline deadline) {
    const Duration left = std::min<Duration>(saturating_until(now, deadline), std::chrono::seconds{1});
    return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count());
}

/// Waits until the descriptor has one of the events (an error or a hang-up is one, too: the next call on it
/// then tells more). False if the deadline came first; it looks at least once, however late it is.
[[nodiscard]] inline bool wait_ready(int fd, short events, Deadline deadline) {
    while (true) {
        pollfd interest{fd, events, 0};
        if (::poll(&interest, 1, poll_timeout(SteadyClock::now(), deadline)) > 0) return true;
        if (SteadyClock::now() >= deadline) return false;
    }
}

/// Whether the descriptor has one of the events now.
[[nodiscard]] inline bool is_ready(int fd, short events) {
    return wait_ready(fd, events, TimePoint::min());
}

/// Waits until an instant, signals or not.
inline void wait_until(TimePoint until) {
    for (TimePoint now = SteadyClock::now(); now < until; now = SteadyClock::now()) {
        ::poll(nullptr, 0, poll_timeout(now, until));
    }
}

}  // namespace kunci::hiredis_detail
