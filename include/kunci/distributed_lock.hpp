#pragma once

#include <kunci/client_options.hpp>
#include <kunci/clock.hpp>
#include <kunci/connection/connection.hpp>
#include <kunci/driver/lock_client.hpp>
#include <kunci/driver/transport.hpp>
#include <kunci/lock_operations.hpp>

#include <memory>
#include <utility>

namespace kunci {

/// Locks on one Redis server, behind any `Connection`: the main type of this library.
///
///     kunci::DistributedLock locks{kunci::HiredisConnection{"redis://127.0.0.1:6379/0"}};
///     if (auto guard = locks.try_lock("daily-notif", {.ttl = 30s})) { ... }
///
/// Make one and share it by reference: it is thread-safe, serves any number of keys, and keeps no state per
/// key. A forked child may go on using it: it then has a connection and threads of its own, and none of the
/// parent's locks. Constructing it sends nothing. Guards may outlive it. Destroying it takes at most two
/// `operation_timeout`s, and that only if a clean-up is still under way.
/// See `LockOperations` for what it does, and README.md for what a lock can promise.
template <Connection C>
class DistributedLock : public LockOperations {
  public:
    /// Throws `std::invalid_argument` if an option makes no sense.
    explicit DistributedLock(C connection, ClientOptions options = {})
        : DistributedLock{std::move(connection), SystemClock::instance(), std::move(options)} {}

    /// As above, on another clock, which outlives this and every guard: for tests.
    DistributedLock(C connection, Clock& clock, ClientOptions options = {})
        : LockOperations{std::make_shared<driver::LockClient>(
              std::make_shared<driver::SingleNode<C>>(std::move(connection)), 1, clock, std::move(options))} {
    }

    DistributedLock(DistributedLock&&) noexcept = default;
    DistributedLock& operator=(DistributedLock&&) noexcept = default;
};

}  // namespace kunci
