#pragma once

#include <kunci/connection/command.hpp>
#include <kunci/protocol/verdict.hpp>
#include <kunci/scripts/lock_scripts.hpp>
#include <kunci/time.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kunci::protocol {

/// The position of a node in the configuration, from 0.
using NodeIndex = std::size_t;

/// Something to send now, to one node.
struct Request {
    NodeIndex node;
    /// Goes back to the machine with the outcome.
    std::uint64_t id;
    Verb verb;
    Command command;
    Deadline deadline;
    /// If the deadline passes without an answer, the lock is given up: a connection that can then sends the
    /// lease's release behind it (see RecallingConnection).
    bool recall;
};

namespace detail {

/// `SET key token NX EX seconds`, with `PX milliseconds` where the TTL is not whole seconds.
[[nodiscard]] inline Command set_command(std::string_view key, std::string_view token, Duration ttl) {
    Command command{"SET"};
    command.add_key(key).add(token).add("NX");
    if (ttl % std::chrono::seconds{1} == Duration::zero()) {
        return command.add("EX").add(ttl / std::chrono::seconds{1}), command;
    }
    return command.add("PX").add(ttl / std::chrono::milliseconds{1}), command;
}

}  // namespace detail

/// The command for `verb`. REQUIRES: `ttl` is whole milliseconds, at least one.
[[nodiscard]] inline Command make_command(Verb verb, scripts::Form form, std::string_view key,
                                          std::string_view token, Duration ttl) {
    if (verb == Verb::set) return detail::set_command(key, token, ttl);
    const auto& script = verb == Verb::claim     ? scripts::claim
                         : verb == Verb::refresh ? scripts::refresh
                                                 : scripts::release;
    Command command = scripts::call(script, form, 1);
    command.add_key(key).add(token);
    if (verb != Verb::release) command.add(ttl / std::chrono::milliseconds{1});
    return command;
}

}  // namespace kunci::protocol
