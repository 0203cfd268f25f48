#pragma once

#include <kunci/connection/reply.hpp>
#include <kunci/testing/command_table.hpp>
#include <kunci/testing/manual_clock.hpp>
#include <kunci/time.hpp>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace kunci::testing {

/// Which commands a fault hits; an aggregate for designated initialisers.
struct FaultScope {
    /// Only commands of this name ("EVALSHA"), in any case. Empty: whatever comes next.
    std::string command = {};
    /// How many of them, one after the other.
    std::size_t times = 1;
    /// The link is dead from the fault on, as after `FaultPlan::cut_link()`; a recall is lost with it.
    bool then_cut_link = false;
};

namespace detail {

struct PlannedFault {
    enum class Kind { drop_request, drop_reply, disconnect, delay, reply };

    Kind kind;
    FaultScope scope;
    Duration delay{0};
    std::optional<Reply> reply = {};
};

}  // namespace detail

/// What is to go wrong on a `FaultyConnection`. A test keeps the plan and adds to it at any time; copies are
/// the same plan. A command is hit by the first fault in the plan that is meant for it, and by one only.
/// Thread-safe.
class FaultPlan {
  public:
    /// Time does not pass: a lost request or reply shows at once, as a connection that broke, and the command
    /// is not recalled.
    FaultPlan() : FaultPlan{nullptr} {}
    /// What is lost is noticed at the deadline: `clock` is moved there. It must outlive the plan.
    explicit FaultPlan(ManualClock& clock) : FaultPlan{&clock} {}

    /// The command is lost on its way: not executed, and the caller cannot know.
    void drop_request(FaultScope scope = {}) { add({Kind::drop_request, std::move(scope)}); }
    /// The command is executed, the reply is lost.
    void drop_reply(FaultScope scope = {}) { add({Kind::drop_reply, std::move(scope)}); }
    /// The connection turns out to be gone before a byte was sent.
    void disconnect(FaultScope scope = {}) { add({Kind::disconnect, std::move(scope)}); }
    /// The command takes `by` to reach the server: the plan's clock is moved so far, then it is executed. If
    /// its deadline has passed by then, the reply is lost. Throws `std::logic_error` if the plan has no
    /// clock.
    void delay(TimeSpan by, FaultScope scope = {}) {
        if (clock() == nullptr) throw std::logic_error("kunci: a delay needs a FaultPlan with a ManualClock");
        add({Kind::delay, std::move(scope), by});
    }
    /// The server answers this, and executes nothing: `plan.reply(Reply::error("OOM ..."))`.
    void reply(Reply answer, FaultScope scope = {}) {
        add({Kind::reply, std::move(scope), Duration{0}, std::move(answer)});
    }

    /// Nothing reaches the server any more, until `mend_link()`; planned faults wait so long.
    void cut_link() { set_link(true); }
    void mend_link() { set_link(false); }
    [[nodiscard]] bool link_is_cut() const {
        const std::lock_guard lock{state_->mutex};
        return state_->link_cut;
    }

    /// Whether every planned fault has happened; a test that ends otherwise has not tested what it meant to.
    [[nodiscard]] bool used_up() const {
        const std::lock_guard lock{state_->mutex};
        return state_->faults.empty();
    }

    /// The clock that the plan moves; null if it has none.
    [[nodiscard]] ManualClock* clock() const noexcept { return state_->clock; }

    /// For connections: takes the next fault for a command of this name out of the plan.
    [[nodiscard]] std::optional<detail::PlannedFault> take(std::string_view command) {
        const std::lock_guard lock{state_->mutex};
        const auto found = std::ranges::find_if(state_->faults, [&](const detail::PlannedFault& fault) {
            const std::string& wanted = fault.scope.command;
            return wanted.empty() || std::ranges::equal(wanted, command, {}, detail::lower, detail::lower);
        });
        if (found == state_->faults.end()) return std::nullopt;
        detail::PlannedFault fault = *found;
        if (--found->scope.times == 0) state_->faults.erase(found);
        return fault;
    }

  private:
    using Kind = detail::PlannedFault::Kind;

    struct State {
        explicit State(ManualClock* the_clock) : clock{the_clock} {}

        ManualClock* const clock;
        std::mutex mutex;
        std::deque<detail::PlannedFault> faults;  // guarded by mutex
        bool link_cut = false;                    // guarded by mutex
    };

    explicit FaultPlan(ManualClock* clock) : state_{std::make_shared<State>(clock)} {}

    void add(detail::PlannedFault fault) {
        if (fault.scope.times == 0) return;
        const std::lock_guard lock{state_->mutex};
        state_->faults.push_back(std::move(fault));
    }

    void set_link(bool cut) {
        const std::lock_guard lock{state_->mutex};
        state_->link_cut = cut;
    }

    std::shared_ptr<State> state_;
};

}  // namespace kunci::testing
