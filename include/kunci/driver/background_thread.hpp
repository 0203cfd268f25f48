#pragma once

#include <pthread.h>
#include <signal.h>

#include <thread>
#include <utility>

namespace kunci::driver {

/// Whether this is one of kunci's own threads: then code of the application, an observer or a stop callback,
/// has been called from it, and must not wait for another of these threads, which may be waiting for it.
inline thread_local bool on_background_thread = false;

/// Starts a thread that no signal of the application is ever delivered to: a handler must not run on a thread
/// that its author does not know. Throws `std::system_error` if there can be no further thread.
template <typename Body>
[[nodiscard]] std::thread start_background_thread(Body body) {
    struct SignalsBlocked {
        SignalsBlocked() {
            sigset_t all;
            ::sigfillset(&all);
            ::pthread_sigmask(SIG_SETMASK, &all, &before);
        }
        SignalsBlocked(const SignalsBlocked&) = delete;
        SignalsBlocked& operator=(const SignalsBlocked&) = delete;
        ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before, nullptr); }
        sigset_t before;
    };
    const SignalsBlocked blocked;  // the new thread inherits the mask
    return std::thread{[run = std::move(body)]() mutable {
        on_background_thread = true;
        run();
    }};
}

/// Ends with a thread that has been told to stop: waits for it, unless it is the calling thread itself (an
/// observer or a stop callback gave up the last owner), which then simply runs out.
inline void join_unless_self(std::thread& thread) {
    if (!thread.joinable()) return;
    if (thread.get_id() == std::this_thread::get_id()) {
        thread.detach();
    } else {
        thread.join();
    }
}

}  // namespace kunci::driver
