#pragma once

#include <kunci/detail/immortal.hpp>
#include <kunci/time.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

namespace kunci {

/// What a sleeping thread is woken by. `signal()` before, during or after the sleep ends exactly one sleep,
/// so no wake-up is ever lost. One sleeper at a time; any number of signalling threads.
class Wakeup {
  public:
    /// Ends the current sleep, or the next one if nobody sleeps now. Thread-safe.
    void signal() {
        {
            const std::lock_guard lock{mutex_};
            signalled_ = true;
        }
        condition_.notify_one();
    }

    /// Sleeps on the operating system's clock until `signal()` or for `longest`; returns whether it was
    /// signalled.
    bool wait_for(Duration longest) {
        std::unique_lock lock{mutex_};
        condition_.wait_until(lock, std::chrono::steady_clock::now() + longest,
                              [this] { return signalled_; });
        return take();
    }

    /// Sleeps until `signal()` and takes it.
    void wait() {
        std::unique_lock lock{mutex_};
        condition_.wait(lock, [this] { return signalled_; });
        take();
    }

  private:
    bool take() {
        const bool was = signalled_;
        signalled_ = false;
        return was;
    }

    std::mutex mutex_;
    std::condition_variable condition_;
    bool signalled_ = false;  // guarded by mutex_
};

/// The time a lock lives by: the real one, or one that a test moves (`testing::ManualClock`).
/// Every member is called from several threads at once. A clock outlives everything that was given it.
class Clock {
  public:
    Clock() = default;
    Clock(const Clock&) = delete;
    Clock& operator=(const Clock&) = delete;
    virtual ~Clock() = default;

    [[nodiscard]] virtual TimePoint now() const noexcept = 0;

    /// Sleeps until `wakeup` is signalled or `until` has come, whichever is first; may return early.
    virtual void sleep_until(Wakeup& wakeup, TimePoint until) = 0;
};

/// The real clock: `SteadyClock`.
class SystemClock final : public Clock {
  public:
    [[nodiscard]] TimePoint now() const noexcept override { return SteadyClock::now(); }

    void sleep_until(Wakeup& wakeup, TimePoint until) override {
        wakeup.wait_for(std::clamp(saturating_until(now(), until), Duration::zero(), longest_sleep));
    }

    /// The instance that locks use unless they are given another clock. It has no state, and is never destroyed:
    /// guards may live until the very end of the process.
    static SystemClock& instance() {
        static detail::Immortal<SystemClock> clock;
        return clock.value;
    }

  private:
    // A condition variable waits on a clock that stands still during suspend: a sleep of an hour begun before
    // a suspend of an hour would end an hour late. Looking again every second bounds that error.
    static constexpr Duration longest_sleep = std::chrono::seconds{1};
};

}  // namespace kunci
