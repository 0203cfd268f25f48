#pragma once

#include <kunci/protocol/lease.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kunci::test {

/// Drives a lease by hand: time is a number that the test sets, and every answer is said aloud.
class LeaseScript {
  public:
    explicit LeaseScript(protocol::LeaseTerms terms = {})
        : lease{LockKey{"lock:", "k"}, "token", terms, 42} {}

    /// The only request that is due now; fails if there is none.
    protocol::Request request() {
        auto next = lease.next_request(now);
        if (!next) {
            ADD_FAILURE() << "nothing is due";
            std::abort();
        }
        return *std::move(next);
    }

    /// All requests that are due now.
    std::vector<protocol::Request> requests() {
        std::vector<protocol::Request> all;
        while (auto next = lease.next_request(now)) all.push_back(*std::move(next));
        return all;
    }

    bool idle() { return !lease.next_request(now).has_value(); }

    const protocol::Verdict* answer(const protocol::Request& request, const Outcome& outcome) {
        return lease.on_outcome(request.node, request.id, outcome, now);
    }

    /// Acquires at `now`; the answer comes after `round_trip`.
    void acquire(Duration round_trip = Duration::zero()) {
        lease.begin(TimePoint::max(), false);
        const auto all = requests();
        now += round_trip;
        for (const auto& each : all) answer(each, ok());
    }

    static Outcome ok() { return Reply::status("OK"); }
    static Outcome taken() { return Reply::nil(); }
    static Outcome integer(std::int64_t value) { return Reply::integer(value); }
    static Outcome claimed() { return Reply::array({Reply::integer(1), Reply::integer(-2)}); }
    static Outcome claim_refused(std::int64_t pttl) {
        return Reply::array({Reply::integer(0), Reply::integer(pttl)});
    }
    static Outcome error(std::string text) { return Reply::error(std::move(text)); }
    static Outcome no_script() { return error("NOSCRIPT No matching script. Please use EVAL."); }
    static Outcome unreachable() { return Fault::not_sent(Errc::unreachable, "Connection refused"); }
    static Outcome maybe_executed() { return Fault::maybe_executed("connection reset"); }

    TimePoint now{std::chrono::hours{1}};
    protocol::Lease lease;
};

/// A command as one line, for comparison.
inline std::string line_of(const Command& command) {
    std::string line;
    for (std::size_t i = 0; i < command.size(); ++i) line += (i == 0 ? "" : " ") + std::string{command[i]};
    return line;
}

}  // namespace kunci::test
