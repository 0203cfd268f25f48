// Times: what is given, what is kept, and what a clock does meanwhile. The answers to reports O12 to O22.
#include "support/actor.hpp"
#include "support/locks_on_redis.hpp"
#include "support/monitor.hpp"
#include "support/recording_observer.hpp"
#include "support/server_faults.hpp"
#include "support/wall_clock.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace kunci::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

milliseconds pttl(const RedisServer& server, const std::string& key = "lock:k") {
    return milliseconds{server.command({"PTTL", key}).integer()};
}

// O12
TEST(Durations, refresh_without_a_time_to_live_is_refused_and_changes_nothing) {
    const RedisServer server;
    auto locks = client(server);
    auto token = locks.acquire("k", {.ttl = 10s});
    const auto before = pttl(server);
    for (const TimeSpan ttl : {TimeSpan{0ms}, TimeSpan{-5s}, TimeSpan{999us}}) {
        EXPECT_THROW(static_cast<void>(locks.refresh(token, ttl)), std::invalid_argument);
        EXPECT_THROW(static_cast<void>(locks.try_acquire("other", {.ttl = ttl})), std::invalid_argument);
    }
    EXPECT_LE(pttl(server), before);
    EXPECT_GT(pttl(server), before - slack);
    EXPECT_EQ(server.cli({"EXISTS", "lock:other"}), "0");
}

// O13, O14
TEST(Durations, of_any_unit_and_fraction_come_out_as_they_were_meant) {
    const RedisServer server;
    auto locks = client(server);
    const auto check = [&](TimeSpan ttl, milliseconds expected) {
        const auto token = locks.acquire("k", {.ttl = ttl});
        const auto left = pttl(server);
        EXPECT_GT(left, std::max<milliseconds>(expected - slack, 0ms));
        EXPECT_LE(left, expected);
        static_cast<void>(locks.release(token));
    };
    check(250ms, 250ms);
    check(250'500us, 251ms);  // rounded up
    check(std::chrono::duration<double>{0.75}, 750ms);
    check(std::chrono::duration<float, std::ratio<60>>{0.5F}, 30s);
    check(2h, 2h);
}

// O15
TEST(Durations, that_a_server_or_a_clock_would_overflow_are_refused) {
    const RedisServer server;
    auto locks = client(server);
    for (const TimeSpan ttl : {TimeSpan{milliseconds::max()}, TimeSpan{std::chrono::hours::max()},
                               TimeSpan{milliseconds{1'000'000'000'000'000}}, TimeSpan::max()}) {
        EXPECT_THROW(static_cast<void>(locks.try_lock("k", {.ttl = ttl})), std::invalid_argument);
    }
    EXPECT_EQ(server.cli({"DBSIZE"}), "0");
    const auto century = std::chrono::hours{24} * 365 * 100;
    const auto guard = locks.lock("k", {.ttl = century, .max_hold = TimeSpan::max()});
    EXPECT_GT(pttl(server), century - 1h);
    EXPECT_TRUE(guard.held());
    EXPECT_GT(guard.remaining(), century / 2);
}

// O16
TEST(Durations, refresh_sets_what_remains_and_never_shortens_it) {
    const RedisServer server;
    auto locks = client(server);
    auto token = locks.acquire("k", {.ttl = 10s});
    const auto valid_until = token.valid_until();
    EXPECT_TRUE(locks.refresh(token, 2s));
    EXPECT_GT(pttl(server), 10s - slack);
    EXPECT_EQ(token.valid_until(), valid_until) << "what the server keeps may be believed in";
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(locks.refresh(token, 10s));
    EXPECT_LE(pttl(server), 10s) << "refreshes do not add up";
    const auto left = pttl(server);
    EXPECT_LE(token.valid_until() - locks.now(), left + 1ms);
}

// O17
TEST(Durations, validity_counts_from_the_attempt_that_won_and_not_from_the_wait) {
    const RedisServer server;
    auto holder = client(server);
    auto waiter = client(server);
    const auto token = holder.acquire("k", {.ttl = 1s});
    const auto guard = waiter.lock("k", {.ttl = 1s, .wait_timeout = 10s});
    const auto left = guard.remaining();
    EXPECT_GT(left, 1s - slack);
    EXPECT_LE(left, 990ms - 2ms);
    let_pass(2s);
    EXPECT_TRUE(guard.held()) << "its refresher works from there";
}

// O18, O22
TEST(Durations, wait_and_ttl_know_nothing_of_each_other) {
    const RedisServer server;
    auto holder = client(server);
    auto waiter = client(server);
    for (const TimeSpan wait : {TimeSpan{5s}, TimeSpan::max()}) {
        const auto token = holder.acquire("k", {.ttl = 700ms});
        const auto took =
            time_of([&] { EXPECT_TRUE(waiter.lock("k", {.ttl = 300ms, .wait_timeout = wait}).held()); });
        EXPECT_GE(took, 700ms - slack);
        EXPECT_LE(took, 700ms + slack);
    }
    EXPECT_THROW(static_cast<void>(waiter.try_lock("k", {.wait_timeout = -1ms})), std::invalid_argument);
    EXPECT_TRUE(waiter.try_lock("free", {.wait_timeout = 0ms}));
}

// O19
TEST(Durations, wait_is_kept_to_the_end_and_not_beyond) {
    const RedisServer server;
    server.command({"SET", "lock:k", "stranger", "PX", "60000"});
    auto locks = client(server);
    for (const auto wait : {0ms, 1ms, 30ms, 333ms, 1000ms}) {
        const auto took = time_of([&] { EXPECT_FALSE(locks.try_lock("k", {.wait_timeout = wait})); });
        EXPECT_GE(took, wait);
        EXPECT_LT(took, wait + slack);
    }
}

// O19
TEST(Durations, wait_goes_on_after_a_lost_race) {
    const RedisServer server;
    std::atomic<int> turns = 0;
    {
        std::vector<std::jthread> waiters;
        for (int i = 0; i < 5; ++i) {
            waiters.emplace_back([&] {
                auto locks = client(server);
                const auto end = std::chrono::steady_clock::now() + 2s;
                while (std::chrono::steady_clock::now() < end) {
                    std::optional<LockGuard> guard;
                    const auto took =
                        time_of([&] { guard = locks.try_lock("k", {.ttl = 5s, .wait_timeout = 2s}); });
                    EXPECT_TRUE(guard || took >= 2s) << "gave up early";
                    if (!guard) continue;
                    ++turns;
                    let_pass(100ms);
                }
            });
        }
    }
    EXPECT_GE(turns, 10);
}

// O20
TEST(Durations, steps_of_the_clients_wall_clock_do_not_matter) {
    const RedisServer server;
    WallClock clock;
    Actor holder{server.url(), clock.environment()};
    ASSERT_EQ(holder.ask("lock k 600"), "locked");
    const auto token = to_text(server.command({"GET", "lock:k"}));
    for (const auto step : {1h, -2h, 3h}) {
        clock.step(step);
        let_pass(700ms);  // longer than the lock lives without a refresh
        EXPECT_EQ(holder.ask("held k"), "yes");
        EXPECT_EQ(holder.ask("lost k"), "0");
        EXPECT_EQ(to_text(server.command({"GET", "lock:k"})), token);
    }
    server.command({"SET", "lock:taken", "stranger", "PX", "60000"});
    const auto took = time_of([&] { EXPECT_EQ(holder.ask("lock taken 1000 300"), "refused"); });
    EXPECT_GE(took, 300ms);
    EXPECT_LT(took, 300ms + slack);
    holder.tell("exit");
    EXPECT_EQ(holder.wait_for_exit(5s), 0);
}

// O20
TEST(Durations, step_of_the_servers_wall_clock_ends_the_lock_and_the_holder_is_told) {
    WallClock clock;
    const RedisServer server{{}, clock.environment()};
    RecordingObserver observer;
    auto locks = client(server, {.observer = &observer});
    const auto guard = locks.lock("k", {.ttl = 900ms});
    clock.step(1h);  // Redis counts a TTL on its wall clock
    EXPECT_TRUE(observer.await(Event::Kind::lost));
    EXPECT_FALSE(guard.held());
    EXPECT_EQ(server.cli({"EXISTS", "lock:k"}), "0") << "it is not created again";
}

// O21
TEST(Durations, paused_holder_sees_at_its_first_look_that_the_lock_is_lost) {
    const RedisServer server;
    Actor holder{server.url()};
    ASSERT_EQ(holder.ask("lock k 600"), "locked");
    holder.pause();
    auto other = client(server);
    const auto owner = other.lock("k", {.ttl = 10s, .wait_timeout = 5s});
    holder.resume();
    EXPECT_EQ(holder.ask("held k"), "no");
    EXPECT_TRUE(poll_until([&] { return holder.ask("lost k") == "1"; }, 5s));
    EXPECT_EQ(to_text(server.command({"GET", "lock:k"})), owner.token().token());
    EXPECT_EQ(holder.ask("release k"), "false");
    EXPECT_EQ(holder.ask("lost k"), "1");
    EXPECT_EQ(to_text(server.command({"GET", "lock:k"})), owner.token().token());
}

}  // namespace
}  // namespace kunci::test
