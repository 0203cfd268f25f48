#pragma once

#include "support/server_faults.hpp"
#include "world.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kunci::campaign {

/// The longest that anything stands still.
inline constexpr std::chrono::milliseconds longest_stall{1500};

/// Draws faults of some kinds, and injects them one after the other. The seed alone decides which, when and where.
class FaultSchedule {
  public:
    FaultSchedule(World& world, std::uint64_t seed) : world_{world}, random_{seed} {}

    using Action = std::function<void()>;

    void run(const std::vector<Action>& kinds, std::chrono::milliseconds time) {
        const auto end = std::chrono::steady_clock::now() + time;
        while (std::chrono::steady_clock::now() < end) {
            pass(up_to(300));
            if (kinds.empty()) continue;
            kinds[random_() % kinds.size()]();
            ++injected_;
        }
    }
    [[nodiscard]] std::size_t injected() const { return injected_; }

    // ---- the kinds --------------------------------------------------------------------------------------

    [[nodiscard]] std::vector<Action> links() {
        using Way = test::Relay::Way;
        return {
            [this] {
                on_a_link([](test::Relay& relay, auto ms) { relay.delay(Way::both, ms / 50, ms / 5); });
            },
            [this] { on_a_link([](test::Relay& relay, auto ms) { relay.trickle(Way::both, 7, ms / 100); }); },
            [this] { on_a_link([](test::Relay& relay, auto) { relay.hold(Way::to_server); }); },
            [this] { on_a_link([](test::Relay& relay, auto) { relay.hold(Way::to_client); }); },
            [this] { on_a_link([](test::Relay& relay, auto) { relay.cut(); }); },
            [this] {
                on_a_link([](test::Relay& relay, auto ms) { relay.cut_after(Way::to_server, bytes(ms)); });
            },
            [this] {
                on_a_link(
                    [](test::Relay& relay, auto ms) { relay.cut_after(Way::to_client, bytes(ms) % 8); });
            },
            [this] {
                on_a_link([](test::Relay& relay, auto) {
                    relay.refuse();
                    relay.cut();
                });
            },
        };
    }

    [[nodiscard]] std::vector<Action> lost_replies() {
        using Way = test::Relay::Way;
        return {
            [this] { on_a_link([](test::Relay& relay, auto) { relay.drop_replies(1); }); },
            [this] { on_a_link([](test::Relay& relay, auto) { relay.drop_replies(3); }); },
            [this] { on_a_link([](test::Relay& relay, auto) { relay.drop_replies(1, "set"); }); },
            [this] { on_a_link([](test::Relay& relay, auto) { relay.drop_replies(2, "evalsha"); }); },
            [this] { on_a_link([](test::Relay& relay, auto) { relay.drop(Way::to_client); }); },
            [this] { on_a_link([](test::Relay& relay, auto) { relay.drop(Way::both); }); },
        };
    }

    [[nodiscard]] std::vector<Action> stalls() {
        return {
            [this] {
                world_.server().pause();
                pass(stall());
                world_.server().resume();
            },
            [this] { during<test::PausedClients>("WRITE", std::chrono::seconds{60}); },
            [this] {
                const test::PausedClients pause{world_.server(), "ALL", stall()};
            },
        };
    }

    [[nodiscard]] std::vector<Action> restarts() {
        return {
            [this] {
                world_.server().kill();
                pass(up_to(500));
                world_.server().restart();
                pass(up_to(1000));
            },
            [this] { test::forget_scripts(world_.server()); },
        };
    }

    [[nodiscard]] std::vector<Action> errors() {
        return {
            [this] { during<test::Demoted>(); },
            [this] { during<test::OutOfMemory>(); },
            [this] { during<test::TooFewReplicas>(); },
            [this] { during<test::BusyScript>(); },
            [this] { during<test::TooManyClients>(); },
            [this] { test::forget_scripts(world_.server()); },
            [this] { test::kill_connections(world_.server()); },
        };
    }

    [[nodiscard]] std::vector<Action> workers() {
        const auto pause = [this] {
            const auto seat = some_seat();
            world_.pause_worker(seat);
            pass(stall());
            world_.resume_worker(seat);
        };
        return {pause, pause, [this] { world_.replace_worker(some_seat()); }};
    }

    [[nodiscard]] std::vector<Action> clocks() {
        return {[this] {
            const auto hours = static_cast<int>(random_() % 7) - 3;
            world_.clock(some_seat()).step(std::chrono::hours{hours});
        }};
    }

  private:
    /// Disturbs the link of one worker for a while.
    template <typename How>
    void on_a_link(How how) {
        auto& relay = world_.relay(some_seat());
        how(relay, stall());
        pass(up_to(800));
        relay.heal();
    }

    template <typename Fault, typename... Arguments>
    void during(const Arguments&... arguments) {
        const Fault fault{world_.server(), arguments...};
        pass(stall());
    }

    [[nodiscard]] static std::size_t bytes(std::chrono::milliseconds drawn) {
        return static_cast<std::size_t>(drawn.count()) % 200;
    }
    [[nodiscard]] std::size_t some_seat() { return random_() % world_.seats(); }
    [[nodiscard]] std::chrono::milliseconds up_to(std::uint64_t ms) {
        return std::chrono::milliseconds{random_() % (ms + 1)};
    }
    [[nodiscard]] std::chrono::milliseconds stall() {
        constexpr auto least = std::chrono::milliseconds{50};
        return least + up_to(static_cast<std::uint64_t>((longest_stall - least).count()));
    }

    static void pass(std::chrono::milliseconds time) { ::poll(nullptr, 0, static_cast<int>(time.count())); }

    World& world_;
    std::mt19937_64 random_;
    std::size_t injected_ = 0;
};

/// What kinds of faults belong together.
struct FaultClass {
    std::string_view name;
    std::string_view what;
    bool replies_lost;
    std::vector<FaultSchedule::Action> (*kinds)(FaultSchedule&);
};

inline std::vector<FaultSchedule::Action> every_kind(FaultSchedule& schedule) {
    std::vector<FaultSchedule::Action> all;
    for (auto kinds : {schedule.links(), schedule.lost_replies(), schedule.stalls(), schedule.restarts(),
                       schedule.errors(), schedule.workers(), schedule.clocks()}) {
        all.insert(all.end(), kinds.begin(), kinds.end());
    }
    return all;
}

inline constexpr std::array fault_classes{
    FaultClass{"none", "contention alone", false,
               [](FaultSchedule&) { return std::vector<FaultSchedule::Action>{}; }},
    FaultClass{"links", "links delayed, trickling, held, cut at any byte, refused", true,
               [](FaultSchedule& schedule) { return schedule.links(); }},
    FaultClass{"lost-replies", "replies lost after execution, black holes", true,
               [](FaultSchedule& schedule) { return schedule.lost_replies(); }},
    FaultClass{"stalls", "server stopped and continued, CLIENT PAUSE", true,
               [](FaultSchedule& schedule) { return schedule.stalls(); }},
    FaultClass{"restarts", "server killed and restarted with its data, SCRIPT FLUSH", true,
               [](FaultSchedule& schedule) { return schedule.restarts(); }},
    FaultClass{"errors", "READONLY, OOM, NOREPLICAS, BUSY, maxclients, SCRIPT FLUSH, CLIENT KILL", true,
               [](FaultSchedule& schedule) { return schedule.errors(); }},
    FaultClass{"workers", "holders killed, stopped and continued", true,
               [](FaultSchedule& schedule) { return schedule.workers(); }},
    FaultClass{"clocks", "the holders' wall clocks set by hours", false,
               [](FaultSchedule& schedule) { return schedule.clocks(); }},
    FaultClass{"everything", "all of these", true, every_kind},
};

}  // namespace kunci::campaign
