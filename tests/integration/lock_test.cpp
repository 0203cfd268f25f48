// The lock on a real server: what it sends, how long it holds, and what happens when somebody dies.
#include <kunci/hiredis.hpp>
#include <kunci/kunci.hpp>

#include "support/actor.hpp"
#include "support/child_process.hpp"
#include "support/locks_on_redis.hpp"
#include "support/monitor.hpp"
#include "support/process_facts.hpp"
#include "support/recording_observer.hpp"
#include "support/redis_server.hpp"
#include "support/slack.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace kunci::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

// ---- what goes over the wire ----

TEST(LockOnRedis, sends_exactly_one_set_and_one_evalsha) {
    const RedisServer server;
    auto locks = client(server);
    ASSERT_TRUE(locks.release(locks.acquire("warm-up")));  // the server knows the script from here on
    Monitor monitor{server};
    std::string secret;
    {
        auto guard = locks.try_lock("daily-notif", {.ttl = 60s});
        ASSERT_TRUE(guard);
        secret = std::string{guard->token().token()};
    }
    const std::vector<std::vector<std::string>> expected{
        {"SET", "lock:daily-notif", secret, "NX", "EX", "60"},
        {"EVALSHA", std::string{scripts::release.sha1}, "1", "lock:daily-notif", secret}};
    EXPECT_EQ(monitor.stop(), expected);
}

TEST(LockOnRedis, loads_no_script_beforehand_and_says_each_text_once) {
    const RedisServer server;
    auto locks = client(server);
    Monitor monitor{server};
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(locks.release(locks.acquire("k")));
    std::vector<std::string> names;
    for (const auto& command : monitor.stop()) names.push_back(command[0]);
    EXPECT_EQ(std::ranges::count(names, "SCRIPT"), 0);
    EXPECT_EQ(std::ranges::count(names, "EVAL"), 1);
    EXPECT_EQ(std::ranges::count(names, "SET"), 10);
}

TEST(LockOnRedis, agrees_with_the_server_about_the_digest_of_every_script) {
    const RedisServer server;
    for (const auto& script : {scripts::claim, scripts::refresh, scripts::release}) {
        EXPECT_EQ(server.command({"SCRIPT", "LOAD", script.text}).text(), script.sha1);
    }
}

// O23
TEST(LockOnRedis, sends_nothing_of_a_tenure_after_its_release) {
    const RedisServer server;
    auto locks = client(server);
    Monitor monitor{server};
    constexpr int cycles = 2000;
    for (int i = 0; i < cycles; ++i) {
        // So short that refreshes are always due around the release.
        auto guard = locks.lock("k", {.ttl = 30ms});
        ASSERT_TRUE(guard.release());
    }
    std::vector<std::string> released;
    std::size_t sets = 0;
    for (const auto& command : monitor.stop()) {
        const bool set = command[0] == "SET";
        const auto& token = set ? command[2] : command[4];
        ASSERT_TRUE(released.empty() || token != released.back()) << "a command after the release";
        sets += set ? 1U : 0U;
        const bool release =
            !set && (command[1] == scripts::release.sha1 || command[1] == scripts::release.text);
        // An EVALSHA that finds no script is followed by its EVAL.
        if (release && (command[0] == "EVAL" || sets > 1)) released.push_back(token);
    }
    EXPECT_EQ(sets, static_cast<std::size_t>(cycles));
    EXPECT_EQ(released.size(), static_cast<std::size_t>(cycles));
    EXPECT_EQ(server.command({"DBSIZE"}).integer(), 0);
}

// O01
TEST(LockOnRedis, is_never_seen_without_an_expiry) {
    const RedisServer server;
    std::atomic<bool> done = false;
    std::atomic<int> looks = 0;
    std::jthread watcher{[&] {
        auto control = server.control();
        while (!done) {
            EXPECT_NE(control.command({"PTTL", "lock:k"}).integer(), -1);
            ++looks;
        }
    }};
    auto locks = client(server);
    for (int i = 0; i < 1000; ++i) {
        auto guard = locks.lock("k", {.ttl = 1s});
        ASSERT_TRUE(guard.held());
    }
    done = true;
    watcher.join();
    EXPECT_GT(looks, 100);
}

// ---- holding ----

TEST(LockOnRedis, keeps_a_job_safe_that_outlives_its_ttl_five_times) {
    const RedisServer server;
    RecordingObserver observer;
    auto locks = client(server, {.observer = &observer});
    auto stranger = client(server);
    auto guard = locks.lock("k", {.ttl = 300ms});
    const auto start = steady_clock::now();
    while (steady_clock::now() < start + 5 * 300ms) {
        ASSERT_FALSE(stranger.try_lock("k"));
        ASSERT_TRUE(guard.held());
    }
    EXPECT_FALSE(guard.stop_token().stop_requested());
    EXPECT_GE(observer.count(Event::Kind::refreshed), 10U);
    EXPECT_LE(observer.count(Event::Kind::refreshed), 40U);
    EXPECT_TRUE(guard.release());
    EXPECT_TRUE(stranger.try_lock("k"));
}

TEST(LockOnRedis, waits_for_its_turn) {
    const RedisServer server;
    auto holder = client(server);
    RecordingObserver observer;
    auto waiter = client(server, {.observer = &observer});
    auto guard = std::make_optional(holder.lock("k", {.ttl = 10s}));
    std::jthread releases{[&] {
        ASSERT_TRUE(observer.await(Event::Kind::waiting));
        guard.reset();
    }};
    const auto waited =
        time_of([&] { EXPECT_TRUE(waiter.lock("k", {.ttl = 5s, .wait_timeout = 5s}).held()); });
    EXPECT_LT(waited, 50ms + slack);
}

TEST(LockOnRedis, gives_up_exactly_when_it_was_told_to) {
    const RedisServer server;
    auto holder = client(server);
    auto waiter = client(server);
    const auto guard = holder.lock("k", {.ttl = 60s});
    for (const auto wait : {0ms, 1ms, 30ms, 333ms}) {
        std::error_code error;
        const auto waited = time_of([&] { EXPECT_FALSE(waiter.lock("k", {.wait_timeout = wait}, error)); });
        EXPECT_EQ(error, Errc::lock_held);
        EXPECT_GE(waited, wait);
        EXPECT_LT(waited, wait + slack);
    }
}

TEST(LockOnRedis, ends_the_wait_of_a_cancelled_caller) {
    const RedisServer server;
    auto holder = client(server);
    RecordingObserver observer;
    auto waiter = client(server, {.observer = &observer});
    const auto guard = holder.lock("k", {.ttl = 60s});
    std::stop_source cancel;
    std::jthread canceller{[&] {
        ASSERT_TRUE(observer.await(Event::Kind::waiting));
        cancel.request_stop();
    }};
    const auto waited = time_of([&] {
        EXPECT_THROW(static_cast<void>(waiter.lock("k", {.wait_timeout = 60s, .cancel = cancel.get_token()})),
                     WaitCancelled);
    });
    EXPECT_LT(waited, slack);
}

TEST(LockOnRedis, excludes_many_threads_of_many_clients) {
    const RedisServer server;
    constexpr int clients = 4;
    constexpr int turns = 50;
    int unprotected = 0;  // a race on this would be seen by the count, and by ThreadSanitizer
    std::atomic<int> inside = 0;
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < clients; ++i) {
            threads.emplace_back([&] {
                auto locks = client(server);
                for (int turn = 0; turn < turns; ++turn) {
                    auto guard = locks.lock("k", {.ttl = 10s, .wait_timeout = 60s, .retry_interval = 2ms});
                    EXPECT_EQ(++inside, 1);
                    ++unprotected;
                    --inside;
                }
            });
        }
    }
    EXPECT_EQ(unprotected, clients * turns);
}

TEST(LockOnRedis, serves_many_threads_through_one_client) {
    const RedisServer server;
    auto locks = client(server);
    std::atomic<int> inside = 0;
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < 8; ++i) {
            threads.emplace_back([&] {
                for (int turn = 0; turn < 25; ++turn) {
                    auto guard = locks.lock("k", {.ttl = 10s, .wait_timeout = 60s, .retry_interval = 2ms});
                    EXPECT_EQ(++inside, 1);
                    --inside;
                }
            });
        }
    }
    EXPECT_EQ(server.command({"DBSIZE"}).integer(), 0);
}

// ---- when somebody dies ----

TEST(LockOnRedis, is_free_again_after_the_ttl_when_its_holder_was_killed) {
    const RedisServer server;
    Actor holder{server.url()};
    ASSERT_EQ(holder.ask("lock k 1000"), "locked");
    auto locks = client(server);
    EXPECT_FALSE(locks.try_lock("k"));
    holder.kill();
    const auto waited =
        time_of([&] { EXPECT_TRUE(locks.lock("k", {.ttl = 1s, .wait_timeout = 10s}).held()); });
    EXPECT_LE(waited, 1s + slack);
}

TEST(LockOnRedis, tells_its_holder_in_time_that_a_stopped_server_cannot_be_asked) {
    RedisServer server;
    auto locks = client(server);
    auto guard = locks.lock("k", {.ttl = 600ms});
    std::atomic<TimePoint> told{TimePoint::min()};
    const std::stop_callback note{guard.stop_token(), [&] { told = SteadyClock::now(); }};
    server.pause();
    // No refresh gets through from here on; one may have, before.
    ASSERT_TRUE(poll_until([&] { return told.load() != TimePoint::min(); }, 5s));
    EXPECT_FALSE(guard.held());
    EXPECT_GE(told.load(), guard.valid_until());
    EXPECT_LE(told.load(), guard.valid_until() + 20ms + slack);
    server.resume();
}

TEST(LockOnRedis, is_lost_soon_after_somebody_deleted_or_took_its_key) {
    const RedisServer server;
    auto locks = client(server);
    for (const bool taken : {false, true}) {
        auto guard = locks.lock("k", {.ttl = 600ms});
        std::atomic<bool> told = false;
        const std::stop_callback note{guard.stop_token(), [&] { told = true; }};
        taken ? server.command({"SET", "lock:k", "other"}) : server.command({"DEL", "lock:k"});
        EXPECT_TRUE(poll_until([&] { return told.load(); }, 200ms + slack));
        EXPECT_FALSE(guard.release());
    }
    EXPECT_EQ(server.command({"GET", "lock:k"}).text(), "other");
}

TEST(LockOnRedis, survives_a_server_that_is_away_for_less_than_the_lease) {
    RedisServer server;
    RecordingObserver observer;
    auto locks = client(server, {.operation_timeout = 200ms, .observer = &observer});
    auto guard = locks.lock("k", {.ttl = 3s});
    server.pause();
    ASSERT_TRUE(observer.await(Event::Kind::refresh_failed));
    server.resume();
    ASSERT_TRUE(observer.await(Event::Kind::refreshed));
    EXPECT_TRUE(guard.held());
    EXPECT_FALSE(guard.stop_token().stop_requested());
}

TEST(LockOnRedis, destroys_its_guards_in_time_and_quietly_when_the_server_is_dead) {
    RedisServer server;
    auto locks = client(server, {.operation_timeout = 300ms});
    auto guard = std::make_optional(locks.lock("k", {.ttl = 10s}));
    server.kill();
    EXPECT_LT(time_of([&] { guard.reset(); }), 300ms + 300ms + slack);
}

TEST(LockOnRedis, destroys_its_guards_in_time_when_the_server_hangs_and_cleans_up_later) {
    RedisServer server;
    auto locks = client(server, {.operation_timeout = 300ms});
    std::optional<LockGuard> guard;
    guard = locks.try_lock("k", {.ttl = 30s});
    server.pause();
    EXPECT_LT(time_of([&] { guard.reset(); }), 300ms + 300ms + slack);
    server.resume();
    EXPECT_TRUE(gone(server, "lock:k", 2s + slack));
}

TEST(LockOnRedis, lets_the_exception_of_the_body_through_when_the_server_is_dead) {
    RedisServer server;
    auto locks = client(server, {.operation_timeout = 100ms});
    try {
        auto guard = locks.lock("k", {.ttl = 10s});
        server.kill();
        throw std::runtime_error{"from the body"};
    } catch (const std::runtime_error& e) {
        EXPECT_STREQ(e.what(), "from the body");
    }
}

TEST(LockOnRedis, leaves_no_ghost_when_it_gave_up_on_a_hanging_server) {
    RedisServer server;
    auto locks = client(server, {.operation_timeout = 200ms});
    ASSERT_TRUE(locks.release(locks.acquire("warm-up")));
    server.pause();
    std::error_code error;
    const auto waited =
        time_of([&] { EXPECT_FALSE(locks.acquire("k", {.ttl = 30s, .wait_timeout = 400ms}, error)); });
    EXPECT_EQ(error, Errc::maybe_executed);
    EXPECT_GE(waited, 400ms);
    EXPECT_LT(waited, 400ms + slack);
    server.resume();
    EXPECT_TRUE(gone(server, "lock:k", 2s + slack));
    EXPECT_TRUE(locks.try_acquire("k"));
}

TEST(LockOnRedis, tells_a_dead_server_from_a_taken_lock_at_once) {
    RedisServer server;
    auto locks = client(server);
    server.kill();
    std::error_code error;
    EXPECT_LT(time_of([&] { EXPECT_FALSE(locks.try_lock("k", {}, error)); }), slack);
    EXPECT_EQ(error, Errc::unreachable);
    server.restart();
    EXPECT_TRUE(locks.try_lock("k", {.wait_timeout = 5s}));
}

TEST(LockOnRedis, leaves_no_thread_behind) {
    const RedisServer server;
    const auto before = threads_of_this_process();
    {
        auto locks = client(server);
        EXPECT_EQ(threads_of_this_process(), before) << "an idle client needs no thread";
        std::vector<LockGuard> guards;
        for (int i = 0; i < 20; ++i) guards.push_back(locks.lock(std::to_string(i)));
        EXPECT_GT(threads_of_this_process(), before);
        guards.clear();
    }
    EXPECT_TRUE(poll_until([&] { return threads_of_this_process() == before; }, 5s));
}

}  // namespace
}  // namespace kunci::test
