// What a server may be in: the answers to reports O46 to O57.
#include "support/actor.hpp"
#include "support/cluster.hpp"
#include "support/locks_on_redis.hpp"
#include "support/monitor.hpp"
#include "support/process_facts.hpp"
#include "support/recording_observer.hpp"
#include "support/server_faults.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace kunci::test {
namespace {

using namespace std::chrono_literals;
using Kind = Event::Kind;

std::string value(const RedisServer& server) {
    return to_text(server.command({"GET", "lock:k"}));
}

// O46
TEST(ServerConditions, forgotten_scripts_are_sent_again_in_every_operation) {
    const RedisServer server;
    RecordingObserver observer;
    auto locks = client(server, {.observer = &observer});
    auto others = client(server);
    for (int i = 0; i < 100; ++i) {
        auto token = locks.acquire("k", {.ttl = 30s});
        forget_scripts(server);
        ASSERT_TRUE(locks.refresh(token, 60s));
        forget_scripts(server);
        std::error_code error;
        ASSERT_FALSE(others.acquire("k", {.wait_timeout = 5ms}, error));
        ASSERT_TRUE(error == Errc::lock_held || error == Errc::unreachable) << error.message();
        forget_scripts(server);
        ASSERT_TRUE(locks.release(token));
    }
    const auto guard = locks.lock("k", {.ttl = 300ms});
    for (std::size_t refreshes = 1; refreshes <= 5; ++refreshes) {
        forget_scripts(server);
        ASSERT_TRUE(observer.await(Kind::refreshed, refreshes));
    }
    EXPECT_TRUE(guard.held());
    EXPECT_EQ(observer.count(Kind::refresh_failed), 0U);
}

// O46
TEST(ServerConditions, killed_server_that_has_its_data_again_knows_the_lock) {
    RedisServer server{{"--appendonly", "yes", "--appendfsync", "always"}};
    auto locks = client(server);
    auto token = locks.acquire("k", {.ttl = 60s});
    auto guard = locks.lock("guarded", {.ttl = 1500ms});
    server.kill();
    server.restart();
    EXPECT_TRUE(locks.refresh(token, 70s));
    EXPECT_TRUE(locks.release(token));
    let_pass(1500ms);
    EXPECT_TRUE(guard.held());
    EXPECT_TRUE(guard.release());
}

// O47
TEST(ServerConditions, demoted_master_is_no_refusal_and_a_waiter_waits_for_its_return) {
    const RedisServer server;
    auto holder = client(server);
    auto waiter = client(server);
    auto guard = std::make_optional(holder.lock("k", {.ttl = 3s}));
    std::atomic<bool> granted = false;
    std::jthread waits{[&] {
        const auto mine = waiter.lock("k", {.ttl = 3s, .wait_timeout = 20s});
        granted = true;
    }};
    {
        const Demoted replica{server};
        std::error_code error;
        EXPECT_FALSE(holder.try_lock("other", {}, error));
        EXPECT_EQ(error, make_error_code(Errc::read_only)) << error.message();
        let_pass(500ms);
        EXPECT_FALSE(granted);
    }
    EXPECT_TRUE(guard->held());
    EXPECT_FALSE(granted);
    guard.reset();
    waits.join();
    EXPECT_TRUE(granted);
}

// O48
TEST(ServerConditions, loading_is_waited_out_and_named) {
    RedisServer server;
    server.command({"DEBUG", "POPULATE", "5000"});
    server.command({"SAVE"});
    auto locks = client(server);
    server.restart_loading_slowly(200us);
    std::error_code error;
    const auto took = time_of([&] { EXPECT_FALSE(locks.lock("k", {.wait_timeout = 200ms}, error)); });
    EXPECT_EQ(error, make_error_code(Errc::loading)) << error.message();
    EXPECT_GE(took, 200ms);
    EXPECT_LT(took, 200ms + slack);
    EXPECT_TRUE(locks.lock("k", {.wait_timeout = 20s}).held());
}

// O49
TEST(ServerConditions, full_memory_refuses_new_locks_and_hurts_no_held_one) {
    const RedisServer server;
    RecordingObserver observer;
    auto locks = client(server, {.observer = &observer});
    auto guard = locks.lock("held", {.ttl = 600ms});
    const OutOfMemory oom{server};
    EXPECT_THROW(static_cast<void>(locks.try_lock("k")), ServerError);
    EXPECT_EQ(server.cli({"DBSIZE"}), "1") << "no half of a lock";
    ASSERT_TRUE(observer.await(Kind::refreshed, observer.count(Kind::refreshed) + 3));
    EXPECT_TRUE(guard.held());
    EXPECT_TRUE(guard.release());
}

// O50
TEST(ServerConditions, missing_replicas_make_a_release_an_error_and_not_a_success) {
    const RedisServer server;
    auto locks = client(server);
    auto guard = locks.lock("k", {.ttl = 30s});
    {
        const TooFewReplicas alone{server};
        std::error_code error;
        EXPECT_FALSE(guard.release(error));
        EXPECT_EQ(error, make_error_code(Errc::too_few_replicas)) << error.message();
    }
    EXPECT_EQ(value(server), guard.token().token());
    EXPECT_TRUE(guard.release());
    std::optional<TooFewReplicas> alone{server};
    std::jthread ends{[&] {
        let_pass(300ms);
        alone.reset();
    }};
    EXPECT_TRUE(locks.lock("k", {.wait_timeout = 10s}).held());
}

// O51
TEST(ServerConditions, busy_server_is_waited_out_and_never_told_to_kill_its_script) {
    const RedisServer server;
    auto locks = client(server);
    auto guard = locks.lock("held", {.ttl = 3s});
    std::optional<BusyScript> busy{server};
    std::error_code error;
    EXPECT_FALSE(locks.try_lock("k", {}, error));
    EXPECT_EQ(error, make_error_code(Errc::script_running)) << error.message();
    std::jthread ends{[&] {
        let_pass(500ms);
        EXPECT_EQ(server.cli({"PING"}).substr(0, 5), "BUSY ") << "somebody killed it";
        busy.reset();
    }};
    EXPECT_TRUE(locks.lock("k", {.wait_timeout = 10s}).held());
    ends.join();
    EXPECT_TRUE(locks.try_lock("next"));
    EXPECT_TRUE(guard.held());
}

// O52
TEST(ServerConditions, evicted_lock_is_told_and_not_created_again) {
    const RedisServer server;
    auto locks = client(server);
    const auto guard = locks.lock("k", {.ttl = 900ms});
    server.command({"CONFIG", "SET", "maxmemory-policy", "allkeys-random"});
    server.command({"CONFIG", "SET", "maxmemory", "3mb"});
    const std::string filler(100'000, 'x');
    for (int i = 0; i < 2000 && server.cli({"EXISTS", "lock:k"}) == "1"; ++i) {
        server.command({"SET", "filler" + std::to_string(i % 60), filler});
    }
    ASSERT_EQ(server.cli({"EXISTS", "lock:k"}), "0");
    EXPECT_TRUE(poll_until([&] { return guard.stop_token().stop_requested(); }, 900ms / 3 + slack));
    EXPECT_EQ(server.cli({"EXISTS", "lock:k"}), "0");
}

// O53
TEST(ServerConditions, data_under_the_name_of_a_lock_is_left_alone) {
    const RedisServer server;
    auto locks = client(server);
    server.command({"RPUSH", "lock:list", "x"});
    server.command({"HSET", "lock:hash", "f", "v"});
    server.command({"SET", "lock:string", "data"});
    for (const std::string key : {"list", "hash", "string"}) {
        const auto before = server.cli({"DUMP", "lock:" + key});
        EXPECT_FALSE(locks.try_lock(key));
        Monitor monitor{server};
        std::error_code error;
        const auto took = time_of([&] { EXPECT_FALSE(locks.lock(key, {.wait_timeout = 500ms}, error)); });
        EXPECT_EQ(error, make_error_code(Errc::lock_held)) << error.message();
        EXPECT_GE(took, 500ms);
        EXPECT_LT(took, 500ms + slack);
        EXPECT_LT(monitor.stop().size(), 25U) << "it spins";
        EXPECT_FALSE(locks.release(LockToken{"lock:" + key, "stale"}));
        EXPECT_FALSE(locks.refresh(LockToken{"lock:" + key, "stale"}, 1s));
        EXPECT_EQ(server.cli({"DUMP", "lock:" + key}), before);
    }
}

// O54
TEST(ServerConditions, key_without_expiry_is_waited_for_calmly_and_given_one_by_its_holder) {
    const RedisServer server;
    auto locks = client(server);
    server.command({"SET", "lock:k", "somebody"});
    Monitor monitor{server};
    const auto took = time_of([&] { EXPECT_FALSE(locks.try_lock("k", {.wait_timeout = 700ms})); });
    EXPECT_GE(took, 700ms);
    EXPECT_LT(took, 700ms + slack);
    EXPECT_LT(monitor.stop().size(), 40U);
    std::jthread frees{[&] {
        let_pass(200ms);
        server.command({"DEL", "lock:k"});
    }};
    EXPECT_LT(time_of([&] { EXPECT_TRUE(locks.try_lock("k", {.wait_timeout = 10s})); }), 250ms + slack);

    const auto guard = locks.lock("mine", {.ttl = 600ms});
    server.command({"PERSIST", "lock:mine"});
    EXPECT_TRUE(poll_until(
        [&] {
            return server.command({"PTTL", "lock:mine"}).integer() > 0;
        },
        200ms + slack));
    EXPECT_TRUE(guard.held());
}

// O55
TEST(ServerConditions, cluster_that_has_the_key_elsewhere_is_told_at_once_with_its_words) {
    Cluster cluster;
    auto locks = client(cluster.first());
    const std::string here = cluster.key_of_first();
    const std::string elsewhere = cluster.key_of_second();
    EXPECT_TRUE(locks.try_lock(here));
    Monitor monitor{cluster.first()};
    try {
        static_cast<void>(locks.lock(elsewhere, {.wait_timeout = 30s}));
        ADD_FAILURE() << "granted on the wrong node";
    } catch (const ServerError& e) {
        EXPECT_EQ(e.errc(), Errc::wrong_node);
        EXPECT_NE(std::string{e.what()}.find("MOVED "), std::string::npos) << e.what();
    }
    EXPECT_LE(monitor.stop().size(), 2U);
    std::error_code error;
    auto in_database = client("redis://127.0.0.1:" + std::to_string(cluster.first().port()) + "/1");
    EXPECT_FALSE(in_database.try_lock(here, {}, error));
    EXPECT_EQ(error, make_error_code(Errc::no_such_database)) << error.message();
}

// O55
TEST(ServerConditions, cluster_that_is_down_is_waited_out) {
    const RedisServer server{
        {"--cluster-enabled", "yes", "--cluster-port", std::to_string(detail::probably_free_port())}};
    auto locks = client(server);
    std::error_code error;
    EXPECT_FALSE(locks.lock("k", {.wait_timeout = 200ms}, error));
    EXPECT_EQ(error, make_error_code(Errc::cluster_down)) << error.message();
    std::jthread mends{[&] { EXPECT_EQ(server.cli({"CLUSTER", "ADDSLOTSRANGE", "0", "16383"}), "OK"); }};
    EXPECT_TRUE(locks.lock("k", {.wait_timeout = 20s}).held());
}

// O56
TEST(ServerConditions, one_connection_serves_any_number_of_locks_and_waiters) {
    const RedisServer server;
    auto locks = client(server);
    auto holder = client(server);
    std::vector<LockGuard> guards;
    for (int i = 0; i < 200; ++i) guards.push_back(locks.lock("mine" + std::to_string(i), {.ttl = 10s}));
    const auto taken = holder.lock("taken", {.ttl = 60s});
    std::stop_source cancel;
    std::atomic<int> waiting = 0;
    {
        std::vector<std::jthread> waiters;
        for (int i = 0; i < 100; ++i) {
            waiters.emplace_back([&] {
                ++waiting;
                std::error_code error;
                EXPECT_FALSE(locks.lock(
                    "taken", {.wait_timeout = 60s, .retry_interval = 200ms, .cancel = cancel.get_token()},
                    error));
            });
        }
        ASSERT_TRUE(poll_until([&] { return waiting == 100; }, 20s));
        let_pass(300ms);
        const auto list = server.command({"CLIENT", "LIST", "TYPE", "normal"}).text();
        std::size_t connections = 0;
        for (auto at = list.find(" addr=127.0.0.1:"); at != std::string::npos;
             at = list.find(" addr=127.0.0.1:", at + 1)) {
            ++connections;
        }
        EXPECT_EQ(connections, 2U) << "one for each client";
        cancel.request_stop();
    }
    for (auto& guard : guards) EXPECT_TRUE(guard.held());
}

// O57
TEST(ServerConditions, changed_password_is_told_at_once_without_a_storm_of_connections) {
    const RedisServer server;
    RecordingObserver observer;
    auto locks = client(server, {.observer = &observer});
    auto guard = locks.lock("k", {.ttl = 1200ms});
    PasswordSet locked{server, "tops3cret"};
    const auto connections = locked.connections_received();
    const auto start = std::chrono::steady_clock::now();
    locked.kill_connections();
    std::error_code error;
    const auto took = time_of([&] { EXPECT_FALSE(locks.lock("other", {.wait_timeout = 5s}, error)); });
    EXPECT_EQ(error, make_error_code(Errc::password_required)) << error.message();
    EXPECT_LT(took, slack) << "waiting cannot mend it";
    ASSERT_TRUE(observer.await(Kind::refresh_failed));
    ASSERT_TRUE(observer.await(Kind::lost));
    EXPECT_LE(SteadyClock::now(), guard.valid_until() + slack);
    const std::chrono::duration<double> lasted = std::chrono::steady_clock::now() - start;
    EXPECT_LE(static_cast<double>(locked.connections_received() - connections), 5 + 20 * lasted.count());
    for (const auto& seen : observer.seen()) {
        EXPECT_EQ(seen.detail.find("tops3cret"), std::string::npos);
    }
}

}  // namespace
}  // namespace kunci::test
