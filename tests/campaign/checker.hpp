#pragma once

#include "history.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kunci::campaign {

struct Violation {
    std::string rule;
    std::string what;
};

/// Proves from what the holders and the server have written down that no rule of a lock was broken, or tells which.
class Checker {
  public:
    /// `loss_delay`: how late a loss may be told, in nanoseconds.
    Checker(const History& history, std::int64_t loss_delay) : history_{history}, loss_delay_{loss_delay} {
        for (const auto& each : history.server.tenures) by_token_[each.token] = &each;
    }

    [[nodiscard]] std::vector<Violation> check() {
        check_exclusion();
        for (const auto& each : history_.tenures) {
            check_loss_in_time(each);
            check_against_server(each);
        }
        check_server();
        for (const auto& each : history_.without_turn) violate("liveness", "no turn for " + each);
        for (const auto& each : history_.keys_left)
            violate("nothing left", "a TTL after the end there is " + each);
        return std::move(violations_);
    }

  private:
    void violate(std::string rule, std::string what) {
        violations_.push_back({std::move(rule), std::move(what)});
    }

    [[nodiscard]] static std::string name(const Tenure& tenure) {
        return "lock " + std::to_string(tenure.lock) + ", process " + std::to_string(tenure.process) +
               ", thread " + std::to_string(tenure.thread) + ", token " + tenure.token.substr(0, 8);
    }

    // A holder believed for certain from its acquire's return to the last time it was told so.
    void check_exclusion() {
        std::map<int, std::vector<const Tenure*>> of_lock;
        for (const auto& each : history_.tenures) {
            if (each.last_held != 0) of_lock[each.lock].push_back(&each);
        }
        for (auto& [lock, tenures] : of_lock) {
            std::ranges::sort(tenures, {}, &Tenure::entered);
            const Tenure* latest = nullptr;  // of those so far, the one that believed longest
            for (const Tenure* each : tenures) {
                if (latest != nullptr && each->entered <= latest->last_held) {
                    violate("exclusion", name(*each) + " entered at " + std::to_string(each->entered) +
                                             ", while " + name(*latest) + " held it until " +
                                             std::to_string(latest->last_held));
                }
                if (latest == nullptr || each->last_held > latest->last_held) latest = each;
            }
        }
    }

    void check_loss_in_time(const Tenure& tenure) {
        if (tenure.last_held != 0 && tenure.last_held >= tenure.valid_until) {
            violate("loss in time", name(tenure) + " was held beyond valid_until");
        }
        if (tenure.losses > 1) violate("loss in time", name(tenure) + " was told twice");
        if (tenure.lost_at == 0) {
            const bool must_know =
                tenure.guarded && tenure.release_begun != 0 &&
                tenure.release_begun > tenure.valid_until + loss_delay_ +
                                           paused(tenure.process, tenure.valid_until, tenure.release_begun);
            if (must_know) violate("loss in time", name(tenure) + " was never told");
            return;
        }
        if (tenure.lost_at < tenure.valid_when_lost)
            violate("loss in time", name(tenure) + " was told too early");
        const auto late = tenure.lost_at - tenure.valid_when_lost -
                          paused(tenure.process, tenure.valid_when_lost, tenure.lost_at);
        if (late > loss_delay_) {
            violate("loss in time",
                    name(tenure) + " was told " + std::to_string(late / 1'000'000) + " ms late");
        }
    }

    /// For how long the process stood still between two instants.
    [[nodiscard]] std::int64_t paused(int process, std::int64_t from, std::int64_t to) const {
        std::int64_t total = 0;
        for (const auto& each : history_.pauses) {
            if (each.process != process) continue;
            total += std::max<std::int64_t>(0, std::min(to, each.to) - std::max(from, each.from));
        }
        return total;
    }

    void check_against_server(const Tenure& tenure) {
        const auto found = by_token_.find(tenure.token);
        if (found == by_token_.end()) {
            violate("own token", name(tenure) + " is not in the server's record");
            return;
        }
        const ServerTenure& server = *found->second;
        const auto to_wall = [&](std::int64_t instant) {
            return (instant + history_.wall_offset) / 1'000'000;
        };
        if (tenure.last_held != 0 && to_wall(tenure.last_held) > server.last_expiry) {
            violate("containment", name(tenure) + " was held when the server had dropped it");
        }
        if (tenure.release_result == ReleaseResult::yes && server.end != End::deleted) {
            violate("own token", name(tenure) + " was told to be released, and was not");
        }
        if (server.end == End::deleted && tenure.release_begun == 0 && !was_killed(tenure.process)) {
            violate("own token", name(tenure) + " was deleted by somebody else");
        }
        if (tenure.release_result == ReleaseResult::no && server.end == End::deleted &&
            !history_.replies_lost) {
            violate("own token", name(tenure) + " was deleted by somebody else before its release");
        }
        const auto ended = tenure.release_begun != 0 ? tenure.release_begun : tenure.lost_at;
        const auto most = to_wall(ended + history_.ttl + history_.longest_stall);
        if (ended != 0 && server.last_expiry > most) {
            violate("ttl", name(tenure) + " was kept alive after its end");
        }
    }

    void check_server() {
        for (const auto& each : history_.server.oddities) violate("server's record", each);
        for (const auto& each : history_.server.tenures) {
            if (each.end == End::overwritten) {
                violate("own token", each.key + ", token " + each.token.substr(0, 8) + " was overwritten");
            }
        }
        if (by_token_.size() != history_.server.tenures.size()) {
            violate("own token", "a token was used for two tenures");
        }
    }

    [[nodiscard]] bool was_killed(int process) const {
        return std::ranges::find(history_.killed, process) != history_.killed.end();
    }

    const History& history_;
    const std::int64_t loss_delay_;
    std::map<std::string_view, const ServerTenure*> by_token_;
    std::vector<Violation> violations_;
};

[[nodiscard]] inline std::vector<Violation> check(const History& history, std::int64_t loss_delay) {
    return Checker{history, loss_delay}.check();
}

}  // namespace kunci::campaign
