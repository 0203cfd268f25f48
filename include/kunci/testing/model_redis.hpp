#pragma once

#include <kunci/connection/command.hpp>
#include <kunci/connection/reply.hpp>
#include <kunci/testing/command_table.hpp>
#include <kunci/testing/data_commands.hpp>
#include <kunci/testing/keyspace.hpp>
#include <kunci/testing/script_commands.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace kunci::testing {

/// A model of a Redis 7.0 server as far as locks use one: what it answers to a command at a given time, error
/// texts included. It has no clock, no lock and no threads: `now` is handed in, and may even go backwards.
///
/// It knows GET, SET (NX, XX, EX, PX, KEEPTTL), DEL, EXISTS, TYPE, TTL, PTTL, EXPIRE, PEXPIRE, PERSIST, RPUSH,
/// HSET, PING, ECHO, TIME, DBSIZE, FLUSHALL, FLUSHDB, SCRIPT LOAD, EXISTS and FLUSH, and EVAL and EVALSHA for
/// kunci's own scripts; other commands are unknown to it. A value: copying it is taking a snapshot. Not
/// thread-safe.
class ModelRedis {
  public:
    /// Executes `command` at `now`. As in Redis, the time stands still while it executes.
    Reply execute(const Command& command, WallTime now) {
        std::array<std::string_view, Command::capacity> arguments;
        for (std::size_t i = 0; i < command.size(); ++i) arguments[i] = command[i];
        return execute(std::span<const std::string_view>{arguments.data(), command.size()}, now);
    }

    /// The same, for arguments in any other form. REQUIRES: at least one, the command's name.
    Reply execute(std::span<const std::string_view> arguments, WallTime now) {
        const detail::Invocation call{state_, arguments, now};
        for (const detail::CommandRow* row : {find_row(detail::data_commands, arguments[0]),
                                              find_row(detail::script_commands, arguments[0])}) {
            if (row != nullptr) return run(*row, call);
        }
        return detail::errors::unknown_command(arguments);
    }

  private:
    detail::ServerState state_;
};

}  // namespace kunci::testing
