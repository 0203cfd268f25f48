#pragma once

#include <kunci/time.hpp>

#include <algorithm>
#include <chrono>
#include <random>

namespace kunci::hiredis_detail {

/// How long to leave a server alone that could not be connected to: longer after each failure, and never for
/// exactly the same time, so that clients that lost it together do not return together. One thread at a time.
class Backoff {
  public:
    static constexpr Duration shortest = std::chrono::milliseconds{10};
    static constexpr Duration longest = std::chrono::milliseconds{250};

    /// No attempt before this instant.
    [[nodiscard]] TimePoint retry_at() const noexcept { return retry_at_; }

    void failed(TimePoint now) {
        const Duration::rep half = delay_.count() / 2;
        std::uniform_int_distribution<Duration::rep> jitter{0, half};
        retry_at_ = saturating_add(now, delay_ - Duration{jitter(random_)});
        delay_ = std::min(delay_ * 2, longest);
    }

    void succeeded() noexcept {
        delay_ = shortest;
        retry_at_ = TimePoint::min();
    }

  private:
    Duration delay_ = shortest;
    TimePoint retry_at_ = TimePoint::min();
    // Nothing depends on these numbers being secret; the clock tells the clients apart.
    std::minstd_rand random_{static_cast<std::minstd_rand::result_type>(
        SteadyClock::now().time_since_epoch().count() & 0x7FFFFFFF)};
};

}  // namespace kunci::hiredis_detail
