#pragma once

#include <kunci/clock.hpp>
#include <kunci/driver/quiet_thread.hpp>

#include <atomic>
#include <memory>
#include <thread>
#include <utility>

namespace kunci::driver {

/// The thread that keeps one lease alive. `start` and `stop` are called by one thread at a time; `stop` may be
/// called on the refresher's own thread.
class Refresher {
  public:
    Refresher() : state_{std::make_shared<State>()} {}
    Refresher(const Refresher&) = delete;
    Refresher& operator=(const Refresher&) = delete;
    /// On its own thread, that thread is left to run out.
    ~Refresher() {
        stop();
        if (thread_.joinable()) thread_.detach();
    }

    /// Runs `body(wakeup)` on a thread of its own; `wakeup` is signalled by `stop`.
    /// Throws `std::system_error` if there can be no further thread.
    template <typename Body>
    void start(Body body) {
        thread_ = start_quiet_thread([state = state_, body = std::move(body)] {
            state->id.store(std::this_thread::get_id(), std::memory_order_release);
            body(state->wakeup);
        });
    }

    [[nodiscard]] bool stop_requested() const { return state_->stop.load(std::memory_order_acquire); }

    /// Whether the caller is the body. Thread-safe with respect to `stop`.
    [[nodiscard]] bool is_this_thread() const {
        return state_->id.load(std::memory_order_acquire) == std::this_thread::get_id();
    }

    /// Returns when the body has returned: what it has under way is waited for. Called from the body itself it
    /// returns at once; then another thread must call it again before what the body uses goes away.
    void stop() {
        state_->stop.store(true, std::memory_order_release);
        state_->wakeup.signal();
        if (thread_.joinable() && !is_this_thread()) thread_.join();
    }

  private:
    // Shared with the thread, which may outlive the refresher when it is destroyed on its own thread.
    struct State {
        std::atomic<bool> stop{false};
        std::atomic<std::thread::id> id{};
        Wakeup wakeup;
    };

    std::shared_ptr<State> state_;
    std::thread thread_;
};

}  // namespace kunci::driver
