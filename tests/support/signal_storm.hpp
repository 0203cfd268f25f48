#pragma once

#include <signal.h>
#include <sys/time.h>

#include <atomic>

namespace kunci::test {

/// A SIGALRM every millisecond, whose handler does not let system calls go on. One at a time.
class SignalStorm {
  public:
    SignalStorm() {
        count_ = 0;
        struct sigaction action {};
        action.sa_handler = [](int) { ++count_; };  // no SA_RESTART
        ::sigaction(SIGALRM, &action, &before_);
        const itimerval every_millisecond{{0, 1000}, {0, 1000}};
        ::setitimer(ITIMER_REAL, &every_millisecond, nullptr);
    }
    SignalStorm(const SignalStorm&) = delete;
    SignalStorm& operator=(const SignalStorm&) = delete;
    ~SignalStorm() {
        const itimerval never{};
        ::setitimer(ITIMER_REAL, &never, nullptr);
        ::sigaction(SIGALRM, &before_, nullptr);
    }

    /// How many were delivered since the storm began.
    [[nodiscard]] static int count() { return count_; }

  private:
    static inline std::atomic<int> count_{0};
    struct sigaction before_ {};
};

}  // namespace kunci::test
