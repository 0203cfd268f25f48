#pragma once

// kunci: distributed locks on Redis. Start here.
//
// What an application uses:
//   distributed_lock.hpp   DistributedLock: locks on one server; its operations are in lock_operations.hpp
//   lock_guard.hpp         LockGuard: holds a lock for a scope, keeps it alive, tells when it is lost
//   distributed_mutex.hpp  DistributedMutex: one lock as a standard TimedLockable
//   lock_token.hpp         LockToken: one tenure as a value, for locking by hand
//   lock_options.hpp       LockOptions: ttl, waiting, refreshing; client_options.hpp: what holds for a client
//   error.hpp              Errc and the exceptions; observer.hpp: what happens to the locks, for logs
//   lock_key.hpp           LockKey, striped_key
//   hiredis.hpp            HiredisConnection, the connection to a server (needs hiredis; not included here)
//   testing.hpp            a model Redis and a clock to move, to test code that locks (not included here)
//
// How it is built, each part including only what stands below it:
//   distributed_lock, lock_guard, distributed_mutex
//   driver/                the blocking drivers: they move bytes and time, and decide nothing
//   protocol/              the state machines: all decisions, no I/O, no clock, no thread
//   scripts/               the Lua texts
//   connection/            Command, Reply, Outcome, and the Connection concept
//   error, time, lock_key, lock_token, ...

#include <kunci/client_options.hpp>
#include <kunci/clock.hpp>
#include <kunci/connection/connection.hpp>
#include <kunci/distributed_lock.hpp>
#include <kunci/distributed_mutex.hpp>
#include <kunci/error.hpp>
#include <kunci/lock_guard.hpp>
#include <kunci/lock_key.hpp>
#include <kunci/lock_operations.hpp>
#include <kunci/lock_options.hpp>
#include <kunci/lock_token.hpp>
#include <kunci/observer.hpp>
#include <kunci/time.hpp>
#include <kunci/version.hpp>
