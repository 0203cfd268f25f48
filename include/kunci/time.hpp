#pragma once

#include <time.h>

#include <chrono>
#include <compare>
#include <concepts>
#include <limits>
#include <ratio>
#include <stdexcept>
#include <type_traits>

namespace kunci {

using Duration = std::chrono::nanoseconds;

/// A monotonic clock that goes on while the machine is suspended.
///
/// A lease runs out on the server whether or not this machine sleeps, so `std::chrono::steady_clock`, which
/// stands still during suspend on Linux, would keep a lease alive that the server has long ended.
/// CLOCK_BOOTTIME is used where there is one. The epoch is unspecified. Thread-safe.
struct SteadyClock {
    using duration = Duration;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<SteadyClock, duration>;
    static constexpr bool is_steady = true;

    static time_point now() noexcept {
#ifdef CLOCK_BOOTTIME
        timespec ts{};
        ::clock_gettime(CLOCK_BOOTTIME, &ts);
        return time_point{std::chrono::seconds{ts.tv_sec} + std::chrono::nanoseconds{ts.tv_nsec}};
#else
        return time_point{
            std::chrono::duration_cast<duration>(std::chrono::steady_clock::now().time_since_epoch())};
#endif
    }
};

using TimePoint = SteadyClock::time_point;

/// The absolute instant at which an operation must have ended.
using Deadline = TimePoint;

/// A length of time given by the user: converts from every `std::chrono` duration, integral or floating,
/// and saturates instead of overflowing (`std::chrono::hours::max()` is "longer than anything", not undefined
/// behaviour). Fractions of a nanosecond round up. Throws `std::invalid_argument` for a NaN.
class TimeSpan {
  public:
    constexpr TimeSpan() = default;

    template <typename Rep, typename Period>
    constexpr TimeSpan(std::chrono::duration<Rep, Period> d) : value_{saturate(d)} {}  // NOLINT: implicit

    static constexpr TimeSpan max() { return TimeSpan{Duration::max()}; }

    [[nodiscard]] constexpr Duration value() const { return value_; }
    constexpr operator Duration() const { return value_; }  // NOLINT: implicit, it is the same thing

    friend constexpr auto operator<=>(TimeSpan, TimeSpan) = default;

  private:
    template <typename Rep, typename Period>
    static constexpr Duration saturate(std::chrono::duration<Rep, Period> d) {
        using Factor = std::ratio_divide<Period, std::nano>;
        if constexpr (std::floating_point<Rep>) {
            return from_floating(static_cast<long double>(d.count()) * Factor::num / Factor::den);
        } else {
            constexpr auto most = static_cast<long double>(std::numeric_limits<Duration::rep>::max());
            const long double estimate = static_cast<long double>(d.count()) * Factor::num / Factor::den;
            if (estimate >= most) return Duration::max();
            if (estimate <= -most) return Duration::min();
            return std::chrono::ceil<Duration>(d);
        }
    }

    static constexpr Duration from_floating(long double ns) {
        if (ns != ns) throw std::invalid_argument("kunci: a duration is not a number");
        if (ns >= static_cast<long double>(std::numeric_limits<Duration::rep>::max())) return Duration::max();
        if (ns <= static_cast<long double>(std::numeric_limits<Duration::rep>::min())) return Duration::min();
        const auto whole = static_cast<Duration::rep>(ns);
        return Duration{static_cast<long double>(whole) < ns ? whole + 1 : whole};
    }

    Duration value_{0};
};

/// `at + d`, held at the ends of the clock's range instead of wrapping round.
[[nodiscard]] constexpr TimePoint saturating_add(TimePoint at, Duration d) {
    if (d > Duration::zero() && at > TimePoint::max() - d) return TimePoint::max();
    if (d < Duration::zero() && at < TimePoint::min() - d) return TimePoint::min();
    return at + d;
}

/// `end - start` for `start <= end`, held at the longest duration instead of wrapping round.
[[nodiscard]] constexpr Duration saturating_until(TimePoint start, TimePoint end) {
    if (end <= start) return Duration::zero();
    if (start < TimePoint{} && end > TimePoint::max() + start.time_since_epoch()) return Duration::max();
    return end - start;
}

}  // namespace kunci
