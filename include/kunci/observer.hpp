#pragma once

#include <kunci/time.hpp>

#include <cstddef>
#include <string_view>
#include <system_error>

namespace kunci {

/// Something that happened to a lock. The views are valid during the call only. The secret token is never in
/// it.
struct Event {
    enum class Kind {
        acquired,        ///< The lock was granted.
        waiting,         ///< Somebody else holds it, and the wait begins; told once per acquire.
        refused,         ///< Not acquired, since somebody else holds it.
        failed,          ///< Not acquired, for the reason in `error` and `detail`.
        refreshed,       ///< The lease was prolonged.
        refresh_failed,  ///< One refresh failed; it is tried again while the lease lasts.
        lost,  ///< The lease of a guard is over, though it was not released; `detail` tells what was wrong
               ///< with the last refresh, if anything. Told once per guard.
        released,        ///< Released, or found to be over already (then `error` is `Errc::lease_lost`).
        release_failed,  ///< The release got no answer. A guard's destructor leaves it to the background, for up to
                         ///< one TTL; after a call of release() it is the caller's turn.
    };

    Kind kind = Kind::acquired;
    std::string_view key = {};     ///< The lock key, prefix included.
    std::size_t attempts = 0;      ///< Tries to acquire it so far.
    Duration waited{0};            ///< From the call of acquire until now, or until it was granted.
    Duration held_for{0};          ///< Since it was granted.
    Duration validity_left{0};     ///< How much of the lease is left.
    std::error_code error = {};    ///< An `Errc`, or none.
    std::string_view detail = {};  ///< The server's or the operating system's words, if any.
};

/// Watches what happens to the locks of a client, for logs and metrics. Called from the threads that use the
/// locks and from the client's background threads, at several at once, outside of every internal lock; what
/// it throws is dropped. It delays what called it, so it should be quick. It may release a guard, but not destroy
/// one, since the call may come from the guard's own refresher. It outlives the client and its guards.
class Observer {
  public:
    Observer() = default;
    Observer(const Observer&) = delete;
    Observer& operator=(const Observer&) = delete;
    virtual ~Observer() = default;

    virtual void on_event(const Event& event) = 0;
};

}  // namespace kunci
