#pragma once

#include <kunci/clock.hpp>
#include <kunci/driver/background_thread.hpp>

#include <atomic>
#include <memory>
#include <utility>

namespace kunci::driver {

/// The thread that keeps one lease alive. `start` and `join` are called by one thread at a time.
class Refresher {
  public:
    Refresher() : state_{std::make_shared<State>()} {}
    Refresher(const Refresher&) = delete;
    Refresher& operator=(const Refresher&) = delete;
    /// On its own thread, that thread is left to run out.
    ~Refresher() {
        if (thread_.is_of_this_process()) request_stop();
    }

    /// Runs `body(wakeup)` on a thread of its own; `wakeup` is signalled by `request_stop`.
    /// Throws `std::system_error` if there can be no further thread.
    template <typename Body>
    void start(Body body) {
        thread_.start([state = state_, body = std::move(body)] { body(state->wakeup); });
    }

    [[nodiscard]] bool stop_requested() const { return state_->stop.load(std::memory_order_acquire); }

    /// Lets the body return as soon as it has done what is under way. Thread-safe.
    void request_stop() {
        state_->stop.store(true, std::memory_order_release);
        state_->wakeup.signal();
    }

    /// Waits until the body has returned, unless it is the body that calls. REQUIRES: request_stop() was called.
    void join() {
        if (!thread_.is_current()) thread_.join_unless_self();
    }

  private:
    // Shared with the thread, which may outlive the refresher when it is destroyed on its own thread.
    struct State {
        std::atomic<bool> stop{false};
        Wakeup wakeup;
    };

    std::shared_ptr<State> state_;
    BackgroundThread thread_;
};

}  // namespace kunci::driver
