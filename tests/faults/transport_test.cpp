// What networks do to a connection: the answers to reports O37 and O40 to O45.
#include "support/actor.hpp"
#include "support/locks_on_redis.hpp"
#include "support/monitor.hpp"
#include "support/process_facts.hpp"
#include "support/recording_observer.hpp"
#include "support/server_faults.hpp"
#include "support/wall_clock.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace kunci::test {
namespace {

using namespace std::chrono_literals;
using Way = Relay::Way;
using Kind = Event::Kind;

std::string get(const RedisServer& server, const std::string& key) {
    return to_text(server.command({"GET", key}));
}

// O37
TEST(Transport, never_reads_a_late_reply_as_the_answer_to_the_next_command) {
    const RedisServer server;
    Relay relay{server.port()};
    auto locks = client(relay, {.operation_timeout = 20ms});
    server.command({"SET", "lock:taken", "stranger", "PX", "600000"});
    relay.delay(Way::to_client, 0ms, 40ms);  // around the limit
    int late = 0;
    for (int i = 0; i < 60; ++i) {
        std::error_code error;
        const auto first = locks.try_acquire("k" + std::to_string(i), {.ttl = 60s}, error);
        late += !first && error ? 1 : 0;
        // Whatever came of that: this one is somebody else's.
        EXPECT_FALSE(locks.try_acquire("taken", {}, error));
    }
    EXPECT_GT(late, 5);
    EXPECT_EQ(get(server, "lock:taken"), "stranger");
}

// O40
TEST(Transport, connects_again_without_a_word_when_the_server_closed_an_idle_connection) {
    const RedisServer server{{"--timeout", "1"}};
    auto locks = client(server);
    auto token = locks.acquire("held", {.ttl = 60s});
    const auto clients = [&] {
        return server.command({"CLIENT", "LIST", "TYPE", "normal"}).text().find(" addr=127.0.0.1:") !=
               std::string::npos;
    };
    ASSERT_TRUE(poll_until([&] { return !clients(); }, 10s));
    EXPECT_TRUE(locks.try_lock("k"));
    ASSERT_TRUE(poll_until([&] { return !clients(); }, 10s));
    EXPECT_TRUE(locks.release(token));
}

// O41
TEST(Transport, keeps_every_limit_on_a_link_that_has_gone_silent_also_after_it_connected_again) {
    const RedisServer server;
    Relay relay{server.port()};
    constexpr auto limit = 150ms;
    auto locks = client(relay, {.operation_timeout = limit});
    auto guard = locks.lock("k", {.ttl = 900ms});
    relay.hold(Way::both);
    for (int connection = 1; connection <= 3; ++connection) {
        std::error_code error;
        EXPECT_LT(time_of([&] { EXPECT_FALSE(locks.try_lock("other", {}, error)); }), limit + slack);
        EXPECT_TRUE(error == Errc::maybe_executed || error == Errc::unreachable) << error.message();
    }
    ASSERT_TRUE(poll_until([&] { return guard.stop_token().stop_requested(); }, 5s));
    EXPECT_LE(SteadyClock::now(), guard.valid_until() + slack);
    std::error_code error;
    EXPECT_LT(time_of([&] { EXPECT_FALSE(guard.release(error)); }), limit + slack);
    EXPECT_GE(relay.accepted(), 3U);
}

// O41
TEST(Transport, keeps_its_limit_though_nothing_can_be_written_any_more) {
    const RedisServer server;
    Relay relay{server.port()};
    constexpr auto limit = 1s;
    auto locks = client(relay, {.operation_timeout = limit});
    ASSERT_TRUE(locks.release(locks.acquire("warm-up")));
    relay.hold(Way::to_server);
    const std::string large(32U << 20U, 'k');  // more than the buffers between here and there hold
    std::error_code error;
    const auto took = time_of([&] { EXPECT_FALSE(locks.try_lock(large, {}, error)); });
    EXPECT_TRUE(error == Errc::maybe_executed) << error.message();
    EXPECT_LT(took, limit + slack);
}

// O42
TEST(Transport, logs_in_and_selects_its_database_again_on_every_connection) {
    const RedisServer server{{"--requirepass", "secret"}};
    const auto url = "redis://:secret@127.0.0.1:" + std::to_string(server.port()) + "/5";
    RecordingObserver observer;
    auto locks = client(url, {.observer = &observer});
    auto waiters = client(url);
    auto guard = std::make_optional(locks.lock("k", {.ttl = 900ms}));
    for (int i = 0; i < 3; ++i) {
        const auto refreshed = observer.count(Kind::refreshed);
        kill_connections(server);
        ASSERT_TRUE(observer.await(Kind::refreshed, refreshed + 1));
    }
    EXPECT_TRUE(guard->held());
    EXPECT_EQ(server.cli({"DBSIZE"}), "0") << "nothing is in database 0";
    auto control = server.control();
    control.command({"SELECT", "5"});
    EXPECT_GT(control.command({"PTTL", "lock:k"}).integer(), 0);
    EXPECT_FALSE(waiters.try_lock("k"));
    guard.reset();
    EXPECT_TRUE(waiters.try_lock("k", {.wait_timeout = 5s}));
}

// O43
TEST(Transport, takes_limits_of_any_length_at_their_word) {
    RedisServer server;
    for (const TimeSpan limit : {TimeSpan{0ms}, TimeSpan{-1ms}}) {
        EXPECT_THROW(client(server, {.operation_timeout = limit}), std::invalid_argument);
    }
    std::vector<Locks> clients;
    const std::vector<TimeSpan> limits{999us, 1ms, 500ms, 1500ms};
    for (const auto limit : limits) clients.push_back(client(server, {.operation_timeout = limit}));
    server.pause();
    for (std::size_t i = 0; i < limits.size(); ++i) {
        std::error_code error;
        const auto took = time_of([&] { EXPECT_FALSE(clients[i].try_lock("k", {.ttl = 30s}, error)); });
        EXPECT_GE(took, limits[i].value());
        EXPECT_LT(took, limits[i].value() + slack);
    }
    server.resume();
}

// O43, O84
TEST(Transport, limit_of_a_command_does_not_cut_a_wait_short) {
    RedisServer server;
    server.command({"SET", "lock:k", "stranger", "PX", "600000"});
    auto locks = client(server, {.operation_timeout = 100ms});
    const auto took = time_of([&] {
        std::jthread restart{[&] {
            let_pass(300ms);
            server.restart();
            server.command({"SET", "lock:k", "stranger", "PX", "600000"});
        }};
        std::error_code error;
        const auto guard = locks.lock("k", {.ttl = 10s, .wait_timeout = 1500ms}, error);
        EXPECT_TRUE(guard || error == Errc::lock_held) << error.message();
        if (guard) let_pass(1500ms);  // it was first at the restarted server
    });
    EXPECT_GE(took, 1500ms);
}

// O44
TEST(Transport, slow_name_server_holds_nobody_beyond_the_limit_and_loses_no_lock) {
    const RedisServer server;
    Relay relay{server.port()};
    WallClock shim;
    auto environment = shim.environment();
    environment.emplace_back("KUNCI_SLOW_NAMES=2000");
    Actor actor{"redis://localhost:" + std::to_string(relay.port()), environment};
    const auto took = time_of([&] {
        const auto answer = actor.ask("lock k 1000 700");
        EXPECT_NE(answer.find("name look-up: no answer"), std::string::npos) << answer;
    });
    EXPECT_LT(took, 700ms + slack);
    ASSERT_TRUE(poll_until([&] { return actor.ask("lock k 1500 500") == "locked"; }, 10s));
    relay.cut();  // the refresher has to connect again, and asks the name server for it
    let_pass(2s);
    EXPECT_EQ(actor.ask("held k"), "yes") << "by the addresses that it knew";
}

// O44
TEST(Transport, tries_all_addresses_of_a_name) {
    const RedisServer server;  // on 127.0.0.1 only, and localhost may be ::1 first
    auto locks = client("redis://localhost:" + std::to_string(server.port()));
    EXPECT_TRUE(locks.try_lock("k"));
}

// O45
TEST(Transport, carries_keys_of_any_bytes_and_never_confuses_two) {
    const RedisServer server;
    auto locks = client(server);
    auto others = client(server);
    const std::vector<std::string> keys{"a b",
                                        "100%",
                                        std::string{"a\0b", 3},
                                        std::string{"a\0c", 3},
                                        "\r\n",
                                        "\xff",
                                        "k\xC3\xBCrzel",
                                        "{tag}x",
                                        "*3\r\n$3",
                                        "'\"\\",
                                        std::string(1U << 20U, 'x')};
    std::vector<LockGuard> guards;
    for (const auto& key : keys) {
        guards.push_back(locks.lock(key, {.ttl = 600ms}));
        EXPECT_EQ(server.command({"GET", "lock:" + key}).text(), guards.back().token().token());
        EXPECT_FALSE(others.try_lock(key));
    }
    EXPECT_EQ(server.command({"DBSIZE"}).integer(), static_cast<std::int64_t>(keys.size()));
    let_pass(700ms);  // refreshed
    for (auto& guard : guards) EXPECT_TRUE(guard.release());
    for (const auto& key : keys) EXPECT_TRUE(others.try_lock(key));
    EXPECT_EQ(server.cli({"DBSIZE"}), "0");
    EXPECT_THROW(static_cast<void>(locks.try_lock("")), std::invalid_argument);
}

}  // namespace
}  // namespace kunci::test
