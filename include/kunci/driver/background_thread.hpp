#pragma once

#include <kunci/detail/process_mark.hpp>
#include <kunci/detail/signals_blocked.hpp>

#include <memory>
#include <thread>
#include <utility>

namespace kunci::driver {

/// Whether this is one of kunci's own threads: then code of the application, an observer or a stop callback,
/// has been called from it, and must not wait for another of these threads, which may be waiting for it.
inline thread_local bool on_background_thread = false;

/// A thread that no signal of the application is ever delivered to: a handler must not run on a thread that its
/// author does not know. One thread at a time, except for `is_current()`.
class BackgroundThread {
  public:
    BackgroundThread() = default;
    BackgroundThread(const BackgroundThread&) = delete;
    BackgroundThread& operator=(const BackgroundThread&) = delete;
    /// As `join_unless_self()`. In a forked child, where there is no such thread, it does nothing.
    ~BackgroundThread() {
        if (!is_of_this_process()) return;
        join_unless_self();
        std::destroy_at(&handle_.thread);
    }

    /// Throws `std::system_error` if there can be no further thread. REQUIRES: there is none yet, or it was joined.
    template <typename Body>
    void start(Body body) {
        const kunci::detail::SignalsBlocked blocked;  // the new thread inherits the mask
        handle_.thread = std::thread{[run = std::move(body)]() mutable {
            on_background_thread = true;
            run();
        }};
    }

    /// False in a forked child, where there is no such thread.
    [[nodiscard]] bool is_of_this_process() const { return home_.is_of_this_process(); }
    [[nodiscard]] bool started() const { return handle_.thread.joinable(); }
    [[nodiscard]] bool is_current() const { return handle_.thread.get_id() == std::this_thread::get_id(); }

    /// Ends with a thread that has been told to stop: waits for it, unless it is the calling thread itself (an
    /// observer or a stop callback gave up the last owner), which then simply runs out.
    void join_unless_self() {
        if (!started()) return;
        if (is_current()) {
            handle_.thread.detach();
        } else {
            handle_.thread.join();
        }
    }

  private:
    // Destroyed by hand: the destructor of a std::thread that was never joined ends the program, and a forked
    // child cannot join it.
    union Handle {
        Handle() : thread{} {}
        Handle(const Handle&) = delete;
        Handle& operator=(const Handle&) = delete;
        ~Handle() {}  // NOLINT(modernize-use-equals-default): that would be deleted

        std::thread thread;
    };

    kunci::detail::ProcessMark home_;
    Handle handle_;
};

}  // namespace kunci::driver
