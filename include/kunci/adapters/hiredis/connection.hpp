#pragma once

#include <kunci/adapters/hiredis/client.hpp>
#include <kunci/adapters/hiredis/options.hpp>
#include <kunci/adapters/hiredis/redis_url.hpp>
#include <kunci/connection/command.hpp>
#include <kunci/connection/connection.hpp>
#include <kunci/connection/outcome.hpp>
#include <kunci/time.hpp>

#include <memory>
#include <string_view>

namespace kunci {

/// A connection to one Redis server, with hiredis as the reader of its replies.
///
/// It connects at its first use, and again when the connection was lost, with a growing pause (10 to 250 ms)
/// between attempts that fail; every new connection is authenticated and set to its database first. A
/// connection with an unanswered command is closed, never used again. Every `execute()` keeps its deadline,
/// whatever name server, network and server do. Raises no SIGPIPE; no program started by the process inherits
/// its descriptor. After fork() only one of the two processes may go on using it.
///
/// Thread-safe but for moving and destroying; concurrent calls wait for each other, in order. A moved-from
/// connection can only be destroyed or assigned to. Meets Connection and RecallingConnection.
class HiredisConnection {
  public:
    /// `url` as `parse_redis_url()` reads it. Does not block and does not care whether the server is there.
    /// Throws `std::invalid_argument`, without the password, if the URL or an option is wrong, or asks for
    /// TLS where hiredis has none.
    explicit HiredisConnection(std::string_view url, const HiredisOptions& options = {})
        : client_{std::make_unique<hiredis_detail::Client>(parse_redis_url(url), options)} {}

    /// Sends the command and waits for the reply until the deadline. A `not_sent` fault is
    /// `Errc::unreachable`, or, where the server refused the connection, `not_permitted` (password, ACL),
    /// `misconfigured` (no such database) or `server_refused`. Throws `std::bad_alloc` only.
    [[nodiscard]] Outcome execute(const Command& command, Deadline deadline) {
        return client_->execute(command, deadline, nullptr);
    }

    /// The same; if the deadline passes after the command went out whole, `recall` is written behind it.
    [[nodiscard]] Outcome execute(const Command& command, Deadline deadline, const Command& recall) {
        return client_->execute(command, deadline, &recall);
    }

  private:
    std::unique_ptr<hiredis_detail::Client> client_;
};

static_assert(Connection<HiredisConnection>);
static_assert(RecallingConnection<HiredisConnection>);

}  // namespace kunci
