#pragma once

#include <kunci/connection/command.hpp>
#include <kunci/connection/outcome.hpp>
#include <kunci/time.hpp>

#include <concepts>
#include <string>

namespace kunci {

// Requirements of a Connection
// ----------------------------
// A type C meets the Connection requirements if it is movable and, for an lvalue c of type C, a `const
// Command` lvalue q and a `Deadline` d (an instant of the clock that the lock was given, `SteadyClock` by
// default):
//
//   expression          return type   semantics
//   ------------------  ------------  ----------------------------------------------------------------------
//   c.execute(q, d)     Outcome       Sends q to the one server behind c and waits for its reply until d.
//                                     - A reply of the server, errors included, is a `Reply`; a server error
//                                       is never thrown.
//                                     - Otherwise a `Fault`. `not_sent` only if not one byte of q was handed
//                                       to the operating system; in all doubt `maybe_executed`.
//                                     - Returns by d, or shortly after; connecting, name look-up and waiting
//                                       for other threads count into it. d may have passed already.
//                                     - After a fault no later call may receive the reply to q.
//                                     - q is never sent twice within one call.
//                                     - Thread-safe: called from several threads at once. May throw only
//                                       what allocation throws.
//                                     - q need not outlive the call.
//
// Constructing, moving and destroying C does not block. Moving is not thread-safe.
//
// A C that also meets the RecallingConnection requirements offers, for a `const Command` lvalue r:
//
//   c.execute(q, d, r)  Outcome       As above; and if d passes after q was sent whole, r is written behind it
//                                     on the same byte stream, as far as that goes without waiting, before
//                                     the stream is closed. Nobody reads the reply to r. r is never sent
//                                     before d, nor after another fault: the caller may still repeat q then.
//                                     The server thus sees r after q, which no second connection can
//                                     guarantee: a lock that gives up so removes what its late SET creates.
//
// A C that also meets the AddressedConnection requirements offers, thread-safe:
//
//   c.address()         std::string   Where the server is, for messages: "host:port/db", a path. No password.

template <typename C>
concept Connection = std::movable<C> && requires(C& c, const Command& command, Deadline deadline) {
    { c.execute(command, deadline) } -> std::same_as<Outcome>;
};

template <typename C>
concept RecallingConnection = Connection<C> &&
    requires(C& c, const Command& command, Deadline deadline, const Command& recall) {
    { c.execute(command, deadline, recall) } -> std::same_as<Outcome>;
};

template <typename C>
concept AddressedConnection = Connection<C> && requires(C& c) {
    { c.address() } -> std::convertible_to<std::string>;
};

}  // namespace kunci
