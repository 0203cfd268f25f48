#pragma once

#include <kunci/clock.hpp>
#include <kunci/driver/background_thread.hpp>

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace kunci::driver {

/// Tells holders in time that their lease has ended. One thread for all leases of a client, started by the
/// first; it does no I/O and takes no lock that is held during I/O, so nothing that hangs can delay it, except
/// the application's own callbacks, which run on it. Thread-safe.
///
/// A lease is looked at when it would have ended as of the last look. Refreshing it does not touch the timer,
/// and a new lease wakes the thread only if it ends before all others.
class LossTimer {
  public:
    class Watched;

  private:
    using Schedule = std::multimap<TimePoint, std::shared_ptr<Watched>>;

  public:
    /// Something that ends at an instant which may move.
    class Watched {
      public:
        Watched() = default;
        Watched(const Watched&) = delete;
        Watched& operator=(const Watched&) = delete;
        virtual ~Watched() = default;

        /// Called on the timer's thread: announces the loss if there is one. Returns when to look next, or
        /// nothing if there is nothing more to watch.
        virtual std::optional<TimePoint> look(TimePoint now) = 0;

      private:
        friend class LossTimer;
        // Guarded by the timer's mutex.
        Schedule::iterator place_{};
        bool placed_ = false;  // place_ is valid; not so during a look
        bool watched_ = false;
        bool look_again_ = false;  // something changed during a look
    };

    explicit LossTimer(Clock& clock) : state_{std::make_shared<State>(clock)} {}
    LossTimer(const LossTimer&) = delete;
    LossTimer& operator=(const LossTimer&) = delete;
    ~LossTimer() {
        {
            const std::lock_guard lock{state_->mutex};
            state_->stopping = true;
        }
        state_->wakeup.signal();
        thread_.join_unless_self();
    }

    /// Looks at `watched` from `at` on. Throws `std::system_error` if the thread cannot be started.
    void watch(std::shared_ptr<Watched> watched, TimePoint at) {
        bool wake = false;
        {
            const std::lock_guard lock{state_->mutex};
            if (!thread_.started()) thread_.start([state = state_] { state->run(); });
            Schedule one;
            one.emplace(at, std::move(watched));
            one.begin()->second->watched_ = true;
            wake = state_->place(one.extract(one.begin()), at);
        }
        if (wake) state_->wakeup.signal();
    }

    /// Looks at `watched` as soon as possible.
    void look_now(const std::shared_ptr<Watched>& watched) {
        bool wake = false;
        {
            const std::lock_guard lock{state_->mutex};
            if (!watched->watched_) return;
            watched->look_again_ = !watched->placed_;
            if (!watched->placed_) return;
            wake = state_->place(state_->schedule.extract(watched->place_), TimePoint::min());
        }
        if (wake) state_->wakeup.signal();
    }

    /// Returns when no look at `watched` is under way (unless called from it). Call it after `unwatch`, and not
    /// with anything held that a look may want.
    void await_look(const Watched& watched) const {
        std::unique_lock lock{state_->mutex};
        if (state_->thread_id == std::this_thread::get_id()) return;
        state_->look_ended.wait(lock, [&] { return state_->looking_at != &watched; });
    }

    /// No look begins after this; one that is under way is not waited for.
    void unwatch(Watched& watched) {
        Schedule::node_type entry;  // destroyed after the mutex is free, since it may be the last owner
        const std::lock_guard lock{state_->mutex};
        watched.watched_ = false;
        if (!watched.placed_) return;
        watched.placed_ = false;
        entry = state_->schedule.extract(watched.place_);
    }

  private:
    // Shared with the thread, which may outlive the timer when the timer is destroyed on it.
    struct State {
        explicit State(Clock& c) : clock{c} {}

        /// Returns whether the thread must be woken. Allocates nothing: the thread must not fail.
        bool place(Schedule::node_type entry, TimePoint at) noexcept {
            Watched& watched = *entry.mapped();
            entry.key() = at;
            watched.place_ = schedule.insert(std::move(entry));
            watched.placed_ = true;
            watched.look_again_ = false;
            return at < sleeping_until;
        }

        void run() {
            {
                const std::lock_guard lock{mutex};
                thread_id = std::this_thread::get_id();
            }
            for (;;) {
                look_at_due();
                TimePoint wake;
                {
                    const std::lock_guard lock{mutex};
                    if (stopping) return;
                    wake = schedule.empty() ? TimePoint::max() : schedule.begin()->first;
                    sleeping_until = wake;
                }
                clock.sleep_until(wakeup, wake);
            }
        }

        void look_at_due() {
            const TimePoint now = clock.now();
            while (auto entry = take_due(now)) {
                const auto next = entry.mapped()->look(now);
                put_back(entry, next);
                entry = {};  // perhaps the last owner: before anybody is told that the look is over
                const std::lock_guard lock{mutex};
                looking_at = nullptr;
                look_ended.notify_all();
            }
        }

        void put_back(Schedule::node_type& entry, std::optional<TimePoint> next) {
            const std::lock_guard lock{mutex};
            const Watched& watched = *entry.mapped();
            if (!next || !watched.watched_) return;
            place(std::move(entry), watched.look_again_ ? TimePoint::min() : *next);
        }

        /// The next entry to look at, or an empty one.
        Schedule::node_type take_due(TimePoint now) {
            const std::lock_guard lock{mutex};
            sleeping_until = TimePoint::min();
            if (stopping || schedule.empty() || schedule.begin()->first > now) return {};
            auto entry = schedule.extract(schedule.begin());
            entry.mapped()->placed_ = false;
            looking_at = entry.mapped().get();
            return entry;
        }

        Clock& clock;
        Wakeup wakeup;
        std::mutex mutex;
        Schedule schedule;  // guarded by mutex
        TimePoint sleeping_until =
            TimePoint::min();                 // guarded by mutex; min: awake, will look at the schedule
        std::thread::id thread_id;            // guarded by mutex
        const Watched* looking_at = nullptr;  // guarded by mutex
        std::condition_variable look_ended;
        bool stopping = false;  // guarded by mutex
    };

    std::shared_ptr<State> state_;
    BackgroundThread thread_;  // guarded by state_->mutex until the destructor
};

}  // namespace kunci::driver
