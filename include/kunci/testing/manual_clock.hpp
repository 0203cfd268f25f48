#pragma once

#include <kunci/clock.hpp>
#include <kunci/time.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <stdexcept>
#include <vector>

namespace kunci::testing {

/// A clock that stands still until a test moves it. Moving it wakes whoever sleeps until an instant that has
/// now come, so that hours pass in no time. All members are thread-safe.
class ManualClock final : public Clock {
  public:
    /// Starts at some instant well after `TimePoint{}`, a whole number of milliseconds.
    ManualClock() = default;

    [[nodiscard]] TimePoint now() const noexcept override { return TimePoint{Duration{now_.load()}}; }

    /// Lets `span` pass. Throws `std::invalid_argument` if it is negative: no lock's clock runs backwards.
    void advance(TimeSpan span) {
        if (span < TimeSpan{}) throw std::invalid_argument("kunci: a manual clock cannot go backwards");
        const std::lock_guard lock{mutex_};
        move_to(saturating_add(now(), span));
    }

    /// Moves to `instant`; does nothing if that has come already.
    void advance_to(TimePoint instant) {
        const std::lock_guard lock{mutex_};
        if (instant > now()) move_to(instant);
    }

    void sleep_until(Wakeup& wakeup, TimePoint until) override {
        {
            const std::lock_guard lock{mutex_};
            if (now() >= until) return;
            sleepers_.push_back({&wakeup, until});
            changed_.notify_all();
        }
        // A signal between here and the sleep is kept by the wake-up.
        wakeup.wait();
        // Also waits for an advance() that is signalling right now: afterwards nobody knows the wake-up.
        const std::lock_guard lock{mutex_};
        std::erase_if(sleepers_, [&](const Sleeper& sleeper) { return sleeper.wakeup == &wakeup; });
    }

    /// How many threads sleep on this clock until an instant that has not come.
    [[nodiscard]] std::size_t sleepers() const {
        const std::lock_guard lock{mutex_};
        return sleepers_.size();
    }

    /// Waits until at least `count` threads sleep on this clock, so that a test may move it without
    /// overtaking them. Returns false if `patience`, in real time, ran out first. (A sleeper that somebody
    /// else signalled counts until its thread has noticed.)
    [[nodiscard]] bool await_sleepers(std::size_t count, TimeSpan patience = std::chrono::seconds{10}) const {
        std::unique_lock lock{mutex_};
        const auto until = std::chrono::steady_clock::now() + std::min<Duration>(patience, longest_wait);
        return changed_.wait_until(lock, until, [&] { return sleepers_.size() >= count; });
    }

  private:
    struct Sleeper {
        Wakeup* wakeup;
        TimePoint until;
    };
    static constexpr Duration longest_wait = std::chrono::hours{24};  // keeps the sum within range

    // Whoever is woken here no longer counts as a sleeper: the test must be able to await its next sleep.
    // REQUIRES: mutex_ is held; it keeps the wake-ups alive. Locks are taken in this order only: the clock's,
    // then a wake-up's.
    void move_to(TimePoint instant) {
        now_.store(instant.time_since_epoch().count());
        std::erase_if(sleepers_, [&](const Sleeper& sleeper) {
            const bool due = sleeper.until <= instant;
            if (due) sleeper.wakeup->signal();
            return due;
        });
    }

    mutable std::mutex mutex_;
    mutable std::condition_variable changed_;
    std::atomic<Duration::rep> now_{Duration{std::chrono::hours{1000}}.count()};  // written under mutex_
    std::vector<Sleeper> sleepers_;                                               // guarded by mutex_
};

}  // namespace kunci::testing
