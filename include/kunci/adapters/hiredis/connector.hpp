#pragma once

#include <kunci/adapters/hiredis/backoff.hpp>
#include <kunci/adapters/hiredis/endpoint.hpp>
#include <kunci/adapters/hiredis/greeting.hpp>
#include <kunci/adapters/hiredis/options.hpp>
#include <kunci/adapters/hiredis/redis_url.hpp>
#include <kunci/adapters/hiredis/resolver.hpp>
#include <kunci/adapters/hiredis/session.hpp>
#include <kunci/adapters/hiredis/socket.hpp>
#include <kunci/adapters/hiredis/stream.hpp>
#include <kunci/adapters/hiredis/wait.hpp>
#include <kunci/connection/outcome.hpp>
#include <kunci/error.hpp>
#include <kunci/time.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace kunci::hiredis_detail {

/// Makes sessions with one server, and leaves it alone for a while after each failure. One thread at a time.
class Connector {
  public:
    /// Does not block. Throws `std::invalid_argument` if URL and options cannot be used.
    Connector(const RedisUrl& url, const HiredisOptions& options)
        : streams_{url, options},
          resolver_{url},
          greeting_{url, streams_.needs_greeting()},
          address_{url.address()},
          where_{"redis at " + address_ + ": "} {}

    [[nodiscard]] const std::string& address() const noexcept { return address_; }

    /// Begins every message about this server.
    [[nodiscard]] const std::string& where() const noexcept { return where_; }

    /// Makes one attempt, once the pause after the last failure is over; if the deadline comes before that,
    /// the last failure is the answer. Empty on success; every fault is `not_sent`.
    [[nodiscard]] std::optional<Fault> connect(std::unique_ptr<Session>& session, Deadline deadline) {
        if (const TimePoint retry_at = backoff_.retry_at(); SteadyClock::now() < retry_at) {
            if (deadline <= retry_at) return last_failure_;
            wait_until(retry_at);
        }
        std::optional<Fault> fault = try_all_addresses(session, deadline);
        if (fault) {
            failed(*fault);
        } else {
            backoff_.succeeded();
        }
        return fault;
    }

    /// A session that was never of any use counts as a failure to connect.
    void failed(const Fault& fault) {
        last_failure_ = fault;
        backoff_.failed(SteadyClock::now());
    }

    /// The fault for what the server said when it closed a new session.
    [[nodiscard]] Fault refusal(const std::string& text) const {
        return greeting_.refusal("refused", text, where_);
    }

  private:
    [[nodiscard]] std::optional<Fault> try_all_addresses(std::unique_ptr<Session>& session,
                                                         Deadline deadline) {
        const Addresses addresses = resolver_.resolve(deadline);
        std::optional<Fault> fault = Fault::not_sent(Errc::name_not_found, where_ + addresses.error);
        std::size_t left = addresses.endpoints.size();
        for (const Endpoint& endpoint : addresses.endpoints) {
            // One address that never answers must not use up the time of those behind it.
            const TimePoint now = SteadyClock::now();
            const auto share = saturating_until(now, deadline) / static_cast<Duration::rep>(left--);
            fault = try_address(session, endpoint, saturating_add(now, share));
            // A server that refuses us is reached: its other addresses are no better.
            if (!fault || group_of(fault->code) != Errc::unreachable || SteadyClock::now() >= deadline) break;
        }
        return fault;
    }

    [[nodiscard]] std::optional<Fault> try_address(std::unique_ptr<Session>& session,
                                                   const Endpoint& endpoint, Deadline deadline) const {
        Connected connected = connect_to(endpoint, deadline);
        if (!connected.error.empty()) return Fault::not_sent(connected.code, where_ + connected.error);
        std::optional<Stream> stream;
        if (const std::string error = streams_.open(std::move(connected.socket), stream); !error.empty()) {
            return Fault::not_sent(Errc::tls_failed, where_ + error);
        }
        auto made = std::make_unique<Session>(*std::move(stream));
        if (std::optional<Fault> fault = greeting_.exchange(*made, where_, deadline)) return fault;
        session = std::move(made);
        return std::nullopt;
    }

    StreamFactory streams_;
    Resolver resolver_;
    Greeting greeting_;
    std::string address_;
    std::string where_;
    Backoff backoff_;
    Fault last_failure_;
};

}  // namespace kunci::hiredis_detail
