#pragma once

#include <kunci/connection/command.hpp>
#include <kunci/connection/connection.hpp>
#include <kunci/connection/outcome.hpp>
#include <kunci/error.hpp>
#include <kunci/testing/fault_plan.hpp>
#include <kunci/time.hpp>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace kunci::testing {

/// A connection on which goes wrong what a `FaultPlan` says, and that otherwise is the connection it wraps:
///
///     FaultPlan plan{clock};
///     DistributedLock lock{FaultyConnection{server.connect(), plan}, clock};
///     plan.drop_reply({.command = "SET"});
///
/// Meets the Connection requirements, and RecallingConnection if `C` does: a command that is given up at its
/// deadline is followed by its recall on the wrapped connection, even if the command itself was lost, unless
/// the link is cut. Thread-safe.
template <Connection C>
class FaultyConnection {
  public:
    FaultyConnection(C inner, FaultPlan plan) : inner_{std::move(inner)}, plan_{std::move(plan)} {}

    Outcome execute(const Command& command, Deadline deadline) { return run(command, deadline, nullptr); }

    Outcome execute(const Command& command, Deadline deadline,
                    const Command& recall) requires RecallingConnection<C> {
        return run(command, deadline, &recall);
    }

  private:
    using Kind = detail::PlannedFault::Kind;

    Outcome run(const Command& command, Deadline deadline, const Command* recall) {
        if (plan_.link_is_cut()) return unreachable("the link is cut");
        if (passed(deadline)) return forward(command, deadline, recall);
        const std::optional<detail::PlannedFault> fault = plan_.take(command.name());
        if (!fault) return forward(command, deadline, recall);
        if (fault->scope.then_cut_link) plan_.cut_link();
        switch (fault->kind) {
            case Kind::reply:
                return *fault->reply;
            case Kind::disconnect:
                return unreachable("the server closed the connection");
            case Kind::drop_request:
                break;
            case Kind::drop_reply:
                return lose_reply(forward(command, deadline, recall), deadline, recall);
            case Kind::delay:
                plan_.clock()->advance(fault->delay);
                if (!passed(deadline)) return forward(command, deadline, recall);
                return lose_reply(forward(command, late(deadline), recall), deadline, recall);
        }
        return give_up(deadline, recall);
    }

    // A fault of the wrapped connection is told as it is: there was no reply to lose.
    Outcome lose_reply(Outcome sent, Deadline deadline, const Command* recall) {
        return sent.has_reply() ? give_up(deadline, recall) : std::move(sent);
    }

    Outcome forward(const Command& command, Deadline deadline, const Command* recall) {
        if constexpr (RecallingConnection<C>) {
            if (recall != nullptr) return inner_.execute(command, deadline, *recall);
        }
        return inner_.execute(command, deadline);
    }

    // What an adapter does when no reply has come by the deadline. Where no clock says that it has passed, it
    // is a connection that broke before: then nothing is recalled, since the caller may still try again.
    Outcome give_up(Deadline deadline, const Command* recall) {
        ManualClock* clock = plan_.clock();
        if (clock == nullptr) {
            return Fault::maybe_executed("faulty connection: lost before the reply came");
        }
        clock->advance_to(deadline);
        if (recall != nullptr && !plan_.link_is_cut()) {
            static_cast<void>(inner_.execute(*recall, late(deadline)));
        }
        return Fault::maybe_executed("faulty connection: no reply before the deadline");
    }

    [[nodiscard]] static Outcome unreachable(const char* reason) {
        return Fault::not_sent(Errc::unreachable, std::string{"faulty connection: "} + reason);
    }

    [[nodiscard]] bool passed(Deadline deadline) const {
        const ManualClock* clock = plan_.clock();
        return clock != nullptr && clock->now() >= deadline;
    }

    // A deadline for what the server still gets to see, though the caller has given up.
    // REQUIRES: the plan has a clock.
    [[nodiscard]] Deadline late(Deadline deadline) const {
        constexpr std::chrono::seconds grace{1};
        return saturating_add(std::max<Deadline>(plan_.clock()->now(), deadline), grace);
    }

    C inner_;
    FaultPlan plan_;
};

}  // namespace kunci::testing
