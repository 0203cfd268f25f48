#pragma once

#include <kunci/time.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>

namespace kunci::hiredis_detail {

/// Lets one thread through at a time, in the order of arrival, each waiting until its own deadline. Where
/// nobody else is there it costs one atomic exchange on the way in and one on the way out.
///
/// Not `std::timed_mutex`: that has no order, so a thread that sends one command after the other could keep
/// everybody else out until their deadlines.
class Turnstile {
  public:
    /// True: it is this thread's turn, and `leave()` must follow. False: the deadline came first; a free
    /// turnstile is entered however late it is.
    [[nodiscard]] bool enter(Deadline deadline) {
        State expected = State::free;
        return state_.compare_exchange_strong(expected, State::taken, std::memory_order_acquire,
                                              std::memory_order_relaxed) ||
               queue_up(deadline);
    }

    /// Ends the turn that `enter()` gave.
    void leave() {
        State expected = State::taken;
        if (!state_.compare_exchange_strong(expected, State::free, std::memory_order_release,
                                            std::memory_order_relaxed)) {
            hand_over();
        }
    }

  private:
    enum class State {
        free,
        taken,
        crowded,  // taken, and whoever leaves must look into the queue
    };

    struct Waiter {
        std::condition_variable woken;
        bool has_turn = false;  // guarded by mutex_
    };

    [[nodiscard]] bool queue_up(Deadline deadline) {
        std::unique_lock lock{mutex_};
        Waiter self;
        queue_.push_back(&self);
        if (free_now()) {
            queue_.pop_back();
            return true;
        }
        while (!self.has_turn) {
            const TimePoint now = SteadyClock::now();
            if (now >= deadline) {
                std::erase(queue_, &self);
                return false;
            }
            const Duration left =
                std::min<Duration>(saturating_until(now, deadline), std::chrono::seconds{1});
            self.woken.wait_until(lock, std::chrono::steady_clock::now() + left);
        }
        return true;
    }

    /// Takes the turn if nobody has it; otherwise whoever has it will hand it over. With mutex_ held.
    [[nodiscard]] bool free_now() {
        State seen = state_.load(std::memory_order_relaxed);
        while (true) {
            if (seen == State::crowded) return false;
            const State wanted = seen == State::free ? State::taken : State::crowded;
            if (state_.compare_exchange_weak(seen, wanted, std::memory_order_acquire,
                                             std::memory_order_relaxed)) {
                return wanted == State::taken;
            }
        }
    }

    void hand_over() {
        const std::lock_guard lock{mutex_};
        if (queue_.empty()) {  // who waited has given up
            state_.store(State::free, std::memory_order_release);
            return;
        }
        Waiter* next = queue_.front();
        queue_.pop_front();
        next->has_turn = true;
        next->woken.notify_one();  // with the lock held: the waiter lives no longer than its wait
    }

    std::atomic<State> state_ = State::free;
    std::mutex mutex_;
    std::deque<Waiter*> queue_;  // guarded by mutex_; empty unless state_ is crowded
};

}  // namespace kunci::hiredis_detail
