#pragma once

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

namespace kunci::hiredis_detail {

/// While it lives, a write of the calling thread to a broken stream fails with EPIPE and nothing else: the
/// SIGPIPE that comes with it is swallowed. The process's disposition and a SIGPIPE that was already pending
/// are left alone. For writers that cannot pass MSG_NOSIGNAL.
class SigpipeSwallowed {
  public:
    SigpipeSwallowed() {
        ::sigemptyset(&pipe_);
        ::sigaddset(&pipe_, SIGPIPE);
        sigset_t pending;
        ::sigemptyset(&pending);
        ::sigpending(&pending);
        was_pending_ = ::sigismember(&pending, SIGPIPE) == 1;
        ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
    }
    SigpipeSwallowed(const SigpipeSwallowed&) = delete;
    SigpipeSwallowed& operator=(const SigpipeSwallowed&) = delete;
    ~SigpipeSwallowed() {
        const int error = errno;
        if (!was_pending_) {
            const timespec at_once{};
            while (::sigtimedwait(&pipe_, nullptr, &at_once) < 0 && errno == EINTR) {
            }
        }
        ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
        errno = error;
    }

  private:
    sigset_t pipe_;
    sigset_t before_;
    bool was_pending_;
};

}  // namespace kunci::hiredis_detail
