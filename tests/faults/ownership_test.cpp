// Who owns a lock, and who is told what: the answers to reports O01 to O11.
#include "support/actor.hpp"
#include "support/locks_on_redis.hpp"
#include "support/monitor.hpp"
#include "support/recording_observer.hpp"
#include "support/server_faults.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <optional>
#include <random>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace kunci::test {
namespace {

using namespace std::chrono_literals;

std::string value_of(const RedisServer& server) {
    return to_text(server.command({"GET", "lock:k"}));
}

// O01
TEST(Ownership, never_shows_a_key_without_expiry_though_holders_are_killed_while_they_acquire) {
    const RedisServer server;
    constexpr auto ttl = 300ms;
    std::mt19937 random{1};
    std::jthread watcher{[&](const std::stop_token& stop) {
        RawClient control = server.control();
        while (!stop.stop_requested()) {
            EXPECT_NE(control.command({"PTTL", "lock:busy0"}).integer(), -1);
        }
    }};
    for (int i = 0; i < 5; ++i) {
        Actor holder{server.url()};
        ASSERT_EQ(holder.ask("busy 1"), "busy");  // acquires and releases without end
        ASSERT_TRUE(poll_until([&] { return server.cli({"EXISTS", "lock:busy0"}) == "1"; }, 10s));
        let_pass(std::chrono::milliseconds{random() % 20});
        holder.kill();
        ASSERT_TRUE(gone(server, "lock:busy0", ttl + slack));
    }
    Actor holder{server.url()};
    ASSERT_EQ(holder.ask("lock k " + std::to_string(ttl.count())), "locked");
    holder.kill();
    EXPECT_TRUE(gone(server, "lock:k", ttl + slack));
}

// O02, O73
TEST(Ownership, late_release_leaves_the_next_owner_alone_and_blocks_nobody) {
    const RedisServer server;
    auto first = client(server);
    auto second = client(server);
    auto late = first.lock("k", {.ttl = 100ms, .auto_refresh = false});
    const auto owner = second.lock("k", {.ttl = 5s, .wait_timeout = 5s});
    EXPECT_FALSE(late.release());
    EXPECT_EQ(value_of(server), owner.token().token());
    EXPECT_FALSE(client(server).try_lock("k"));
    EXPECT_TRUE(owner.held());
    // Nothing in the first client's process is left locked either.
    EXPECT_TRUE(first.try_lock("another"));
    EXPECT_FALSE(first.try_lock("k"));
}

// O73
TEST(Ownership, release_that_fails_on_the_wire_blocks_nobody_in_this_process) {
    const RedisServer server;
    Relay relay{server.port()};
    auto locks = client(relay, {.operation_timeout = 100ms});
    auto held = locks.lock("k", {.ttl = 400ms, .auto_refresh = false});
    relay.drop(Relay::Way::both);
    std::error_code error;
    EXPECT_FALSE(held.release(error));
    EXPECT_TRUE(error == Errc::maybe_executed);
    relay.heal();
    EXPECT_TRUE(locks.lock("k", {.ttl = 1s, .wait_timeout = 5s}).held());
}

// O03
TEST(Ownership, belongs_to_the_guard_and_not_to_the_lock_object_that_threads_share) {
    const RedisServer server;
    auto locks = client(server);
    auto expired = locks.lock("k", {.ttl = 100ms, .auto_refresh = false});
    std::optional<LockGuard> owner;
    std::jthread{[&] { owner = locks.lock("k", {.ttl = 5s, .wait_timeout = 5s}); }}.join();
    EXPECT_FALSE(expired.release());
    EXPECT_EQ(value_of(server), owner->token().token());
}

// O04
TEST(Ownership, moves_to_another_thread_with_the_guard) {
    const RedisServer server;
    auto locks = client(server);
    auto guard = locks.lock("k", {.ttl = 10s});
    std::jthread{[mine = std::move(guard)] { EXPECT_TRUE(mine.held()); }}.join();
    EXPECT_EQ(value_of(server), "(nil)");

    auto token = locks.acquire("k", {.ttl = 10s});
    std::jthread{[&] {
        EXPECT_TRUE(locks.refresh(token, 20s));
        EXPECT_TRUE(locks.release(token));
    }}.join();
    EXPECT_EQ(value_of(server), "(nil)");
}

// O05
TEST(Ownership, is_never_pretended_when_the_wait_was_in_vain) {
    const RedisServer server;
    server.command({"SET", "lock:k", "stranger", "PX", "60000"});
    auto locks = client(server);
    bool body_ran = false;
    const auto took = time_of([&] {
        try {
            const auto guard = locks.lock("k", {.wait_timeout = 300ms});
            body_ran = true;
        } catch (const LockAcquisitionFailed& busy) {
            EXPECT_GT(busy.attempts(), 1U);
            EXPECT_GT(busy.holder_ttl(), 50s);
        }
    });
    EXPECT_FALSE(body_ran);
    EXPECT_GE(took, 300ms);
    EXPECT_LT(took, 300ms + slack);
    EXPECT_EQ(value_of(server), "stranger");
}

// O06
TEST(Ownership, is_compared_byte_by_byte_whatever_the_token) {
    const RedisServer server;
    auto locks = client(server);
    const std::string strange{"\x00\r\n %\xff\"\\", 8};
    server.command({"SET", "lock:k", strange, "PX", "10000"});
    LockToken token{"lock:k", strange};
    EXPECT_TRUE(locks.refresh(token, 20s));
    EXPECT_GT(server.command({"PTTL", "lock:k"}).integer(), 10'000);
    EXPECT_FALSE(locks.release(LockToken{"lock:k", strange.substr(0, 7)}));
    EXPECT_TRUE(locks.release(token));
    for (int i = 0; i < 1000; ++i) {
        auto mine = locks.acquire("k");
        ASSERT_EQ(value_of(server), mine.token());
        ASSERT_TRUE(locks.release(mine));
    }
}

// O07, O24
TEST(Ownership, leaves_no_ghost_of_an_acquire_that_a_stopped_server_executes_later) {
    RedisServer server;
    auto locks = client(server, {.operation_timeout = 200ms});
    ASSERT_TRUE(locks.release(locks.acquire("warm-up")));
    server.pause();
    std::error_code error;
    const auto took =
        time_of([&] { EXPECT_FALSE(locks.try_lock("k", {.ttl = 30s, .wait_timeout = 400ms}, error)); });
    EXPECT_TRUE(error == Errc::maybe_executed) << error.message();
    EXPECT_LE(took, 400ms + slack);
    server.resume();
    EXPECT_TRUE(gone(server, "lock:k", 1s + slack));
    EXPECT_TRUE(locks.try_lock("k", {.ttl = 30s}));
}

// O24
TEST(Ownership, is_not_kept_alive_for_a_caller_who_never_got_it) {
    const RedisServer server;
    auto locks = client(server, {.operation_timeout = 200ms});
    {
        const PausedClients pause{server, "ALL", 1500ms};
        std::error_code error;
        EXPECT_FALSE(locks.lock("k", {.ttl = 1s, .wait_timeout = 500ms}, error));
    }
    auto other = client(server);
    EXPECT_LE(time_of([&] { EXPECT_TRUE(other.lock("k", {.wait_timeout = 5s}).held()); }), 1s + slack);
}

// O08
TEST(Ownership, is_not_refused_to_a_client_by_its_own_lost_reply) {
    const RedisServer server;
    Relay relay{server.port()};
    auto locks = client(relay, {.operation_timeout = 200ms});
    ASSERT_TRUE(locks.release(locks.acquire("warm-up")));
    relay.drop_replies(1, "SET");
    const auto took = time_of([&] {
        const auto guard = locks.lock("k", {.ttl = 10s, .wait_timeout = 3s});
        EXPECT_TRUE(guard.held());
        EXPECT_EQ(value_of(server), guard.token().token());
    });
    EXPECT_EQ(relay.dropped_replies(), 1U);
    EXPECT_LT(took, 300ms + slack);
}

// O09
TEST(Ownership, taken_and_broken_are_told_apart_and_say_why) {
    RedisServer server;
    auto locks = client(server);
    server.command({"SET", "lock:taken", "stranger", "PX", "60000"});
    EXPECT_FALSE(locks.try_lock("taken"));
    EXPECT_THROW(static_cast<void>(locks.lock("taken")), LockAcquisitionFailed);
    {
        const OutOfMemory oom{server};
        try {
            static_cast<void>(locks.try_lock("k"));
            ADD_FAILURE() << "granted without memory";
        } catch (const ServerError& e) {
            EXPECT_EQ(e.errc(), Errc::out_of_memory);
            EXPECT_NE(std::string{e.what()}.find("OOM command not allowed"), std::string::npos) << e.what();
        }
    }
    server.kill();
    try {
        static_cast<void>(locks.try_lock("k"));
        ADD_FAILURE() << "granted without a server";
    } catch (const ConnectionError& e) {
        EXPECT_TRUE(e.code() == Errc::unreachable) << e.what();
        EXPECT_NE(std::string{e.what()}.find("Connection refused"), std::string::npos) << e.what();
    }
}

// O10
TEST(Ownership, can_be_given_back_again_after_a_release_that_failed) {
    const RedisServer server;
    Relay relay{server.port()};
    auto locks = client(relay, {.operation_timeout = 200ms});
    auto guard = locks.lock("k", {.ttl = 20s});
    auto token = locks.acquire("by-hand", {.ttl = 20s});
    relay.refuse();
    relay.cut();
    EXPECT_THROW(static_cast<void>(guard.release()), ConnectionError);
    EXPECT_THROW(static_cast<void>(locks.release(token)), ConnectionError);
    EXPECT_FALSE(guard.held()) << "it has asked for the end";
    relay.heal();
    EXPECT_TRUE(guard.release());
    EXPECT_TRUE(locks.release(token));
    EXPECT_EQ(server.cli({"DBSIZE"}), "0");
}

// O11
TEST(Ownership, is_given_back_although_the_work_was_cancelled) {
    const RedisServer server;
    auto locks = client(server);
    std::stop_source work;
    {
        const auto guard = locks.lock("k", {.ttl = 60s, .cancel = work.get_token()});
        work.request_stop();
    }
    EXPECT_EQ(value_of(server), "(nil)");
}

// O11
TEST(Ownership, cancelled_wait_ends_at_once_and_leaves_nothing) {
    const RedisServer server;
    server.command({"SET", "lock:k", "stranger", "PX", "60000"});
    RecordingObserver observer;
    auto locks = client(server, {.observer = &observer});
    std::stop_source cancel;
    std::atomic<std::chrono::steady_clock::time_point> cancelled{};
    std::jthread canceller{[&] {
        ASSERT_TRUE(observer.await(Event::Kind::waiting));
        cancelled = std::chrono::steady_clock::now();
        cancel.request_stop();
    }};
    EXPECT_THROW(static_cast<void>(locks.lock(
                     "k", {.wait_timeout = 60s, .retry_interval = 30s, .cancel = cancel.get_token()})),
                 WaitCancelled);
    EXPECT_LT(std::chrono::steady_clock::now() - cancelled.load(), slack);
    EXPECT_EQ(value_of(server), "stranger");
    EXPECT_EQ(to_text(server.command({"PUBSUB", "CHANNELS"})), "");
    server.command({"DEL", "lock:k"});
    EXPECT_TRUE(client(server).try_lock("k"));
}

}  // namespace
}  // namespace kunci::test
