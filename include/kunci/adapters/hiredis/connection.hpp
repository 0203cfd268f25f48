#pragma once

#include <kunci/adapters/hiredis/client.hpp>
#include <kunci/adapters/hiredis/options.hpp>
#include <kunci/adapters/hiredis/redis_url.hpp>
#include <kunci/connection/command.hpp>
#include <kunci/connection/connection.hpp>
#include <kunci/connection/outcome.hpp>
#include <kunci/detail/per_process.hpp>
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
/// its descriptor. After fork() the child closes its copy at the first use and makes a connection of its own.
///
/// Thread-safe but for moving and destroying; concurrent calls wait for each other, in order. A moved-from
/// connection can only be destroyed or assigned to. Meets Connection and RecallingConnection.
class HiredisConnection {
  public:
    /// `url` as `parse_redis_url()` reads it. Does not block and does not care whether the server is there.
    /// Throws `std::invalid_argument`, without the password, if the URL or an option is wrong, or asks for
    /// TLS where hiredis has none.
    explicit HiredisConnection(std::string_view url, const HiredisOptions& options = {})
        : client_{std::make_unique<PerProcess>([url = parse_redis_url(url), options] {
              return std::make_unique<hiredis_detail::Client>(url, options);
          })} {}

    /// Sends the command and waits for the reply until the deadline. A `not_sent` fault is of the group
    /// `Errc::unreachable`, or, where the server refused the connection, of `not_permitted` (password, ACL),
    /// `misconfigured` (no such database) or `server_refused`. Throws `std::bad_alloc` only.
    [[nodiscard]] Outcome execute(const Command& command, Deadline deadline) {
        return client_->get().execute(command, deadline, nullptr);
    }

    /// The same; if the deadline passes after the command went out whole, `recall` is written behind it.
    [[nodiscard]] Outcome execute(const Command& command, Deadline deadline, const Command& recall) {
        return client_->get().execute(command, deadline, &recall);
    }

    /// "host:port/db", or the path of the Unix socket: for messages, never with a password.
    [[nodiscard]] std::string address() const { return client_->get().address(); }

  private:
    using PerProcess = detail::PerProcess<hiredis_detail::Client>;

    std::unique_ptr<PerProcess> client_;
};

static_assert(Connection<HiredisConnection>);
static_assert(RecallingConnection<HiredisConnection>);

}  // namespace kunci
