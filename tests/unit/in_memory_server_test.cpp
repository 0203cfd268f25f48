#include <kunci/scripts/lock_scripts.hpp>
#include <kunci/scripts/script.hpp>
#include <kunci/testing/in_memory_server.hpp>
#include <kunci/testing/manual_clock.hpp>
#include <kunci/testing/model_redis.hpp>

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using kunci::Command;
using kunci::Outcome;
using kunci::Reply;
using kunci::testing::InMemoryConnection;
using kunci::testing::InMemoryServer;
using kunci::testing::ManualClock;
using kunci::testing::ModelRedis;
namespace scripts = kunci::scripts;

const Reply ok = Reply::status("OK");

Command command(std::initializer_list<std::string_view> arguments) {
    Command result{*arguments.begin()};
    for (const auto* it = arguments.begin() + 1; it != arguments.end(); ++it) result.add(*it);
    return result;
}

/// The model at a time of day that the test sets.
class ModelRedisTest : public ::testing::Test {
  protected:
    Reply ask(std::initializer_list<std::string_view> arguments) {
        return model_.execute(command(arguments), now_);
    }
    std::string error(std::initializer_list<std::string_view> arguments) {
        const Reply reply = ask(arguments);
        return reply.is(Reply::Kind::error) ? reply.text() : "no error";
    }
    std::int64_t integer(std::initializer_list<std::string_view> arguments) {
        const Reply reply = ask(arguments);
        EXPECT_TRUE(reply.is(Reply::Kind::integer)) << reply.text();
        return reply.integer();
    }

    ModelRedis model_;
    kunci::testing::WallTime now_ = 1'700'000'000s;
};

// ----- Expiry --------------------------------------------------------------------------------------------

TEST_F(ModelRedisTest, a_key_lives_through_its_last_millisecond_and_not_a_microsecond_longer) {
    ask({"SET", "k", "v", "PX", "30000"});
    now_ += 30'000ms;
    EXPECT_EQ(ask({"GET", "k"}), Reply::string("v"));
    EXPECT_EQ(integer({"PTTL", "k"}), 0);
    now_ += 999us;
    EXPECT_EQ(ask({"GET", "k"}), Reply::string("v"));
    now_ += 1us;
    EXPECT_EQ(ask({"GET", "k"}), Reply::nil());
    EXPECT_EQ(integer({"PTTL", "k"}), -2);
}

TEST_F(ModelRedisTest, the_part_of_a_millisecond_in_which_a_key_was_set_is_not_counted) {
    now_ += 999us;
    ask({"SET", "k", "v", "PX", "1"});
    EXPECT_EQ(integer({"PTTL", "k"}), 1);
    now_ += 1us;
    EXPECT_EQ(integer({"PTTL", "k"}), 0);
    now_ += 1ms;
    EXPECT_EQ(integer({"EXISTS", "k"}), 0);
}

TEST_F(ModelRedisTest, ttl_is_rounded_to_the_nearest_second) {
    ask({"SET", "k", "v", "PX", "1500"});
    EXPECT_EQ(integer({"TTL", "k"}), 2);
    now_ += 1ms;
    EXPECT_EQ(integer({"TTL", "k"}), 1);
    now_ += 1000ms;
    EXPECT_EQ(integer({"TTL", "k"}), 0);
    EXPECT_EQ(integer({"EXISTS", "k"}), 1);
}

TEST_F(ModelRedisTest, an_expired_key_is_absent_for_every_command) {
    ask({"SET", "k", "v", "PX", "1"});
    now_ += 2ms;
    EXPECT_EQ(integer({"DBSIZE"}), 0);
    EXPECT_EQ(integer({"DEL", "k"}), 0);
    ask({"SET", "k", "v", "PX", "1"});
    now_ += 2ms;
    EXPECT_EQ(ask({"SET", "k", "w", "XX"}), Reply::nil());
    EXPECT_EQ(integer({"PEXPIRE", "k", "1000"}), 0);
    EXPECT_EQ(integer({"PERSIST", "k"}), 0);
    EXPECT_EQ(ask({"TYPE", "k"}), Reply::status("none"));
    EXPECT_EQ(ask({"SET", "k", "w", "NX"}), ok);
    EXPECT_EQ(integer({"PTTL", "k"}), -1);
}

TEST_F(ModelRedisTest, an_expiry_that_is_not_in_the_future_deletes_the_key) {
    for (const std::string_view ttl : {"0", "-1", "-9223372036854775808"}) {
        ask({"SET", "k", "v"});
        EXPECT_EQ(integer({"PEXPIRE", "k", ttl}), 1);
        EXPECT_EQ(integer({"EXISTS", "k"}), 0) << ttl;
    }
}

TEST_F(ModelRedisTest, persist_takes_the_expiry_away_once) {
    ask({"SET", "k", "v", "EX", "10"});
    EXPECT_EQ(integer({"PERSIST", "k"}), 1);
    EXPECT_EQ(integer({"PERSIST", "k"}), 0);
    now_ += 1h;
    EXPECT_EQ(ask({"GET", "k"}), Reply::string("v"));
}

// ----- SET and the others ----------------------------------------------------------------------------------

TEST_F(ModelRedisTest, set_nx_takes_only_a_free_key_and_set_xx_only_a_taken_one) {
    EXPECT_EQ(ask({"SET", "k", "a", "XX"}), Reply::nil());
    EXPECT_EQ(ask({"SET", "k", "a", "NX", "EX", "10"}), ok);
    EXPECT_EQ(ask({"SET", "k", "b", "NX", "EX", "99"}), Reply::nil());
    EXPECT_EQ(ask({"GET", "k"}), Reply::string("a"));
    EXPECT_EQ(integer({"PTTL", "k"}), 10'000) << "a refusal changes nothing";
    EXPECT_EQ(ask({"sEt", "k", "b", "xX", "kEEpttl"}), ok);
    EXPECT_EQ(integer({"PTTL", "k"}), 10'000);
    EXPECT_EQ(ask({"SET", "k", "c", "px", "5"}), ok);
    EXPECT_EQ(integer({"PTTL", "k"}), 5);
}

TEST_F(ModelRedisTest, set_replaces_a_value_of_any_type) {
    ask({"RPUSH", "k", "a"});
    EXPECT_EQ(ask({"SET", "k", "v"}), ok);
    EXPECT_EQ(ask({"TYPE", "k"}), Reply::status("string"));
}

TEST_F(ModelRedisTest, keys_and_values_are_any_bytes) {
    const std::string key{"\0\r\n\xff key", 8};
    const std::string value{"$-1\r\n\0", 6};
    ask({"SET", key, value});
    EXPECT_EQ(ask({"GET", key}), Reply::string(value));
    ask({"SET", "", ""});
    EXPECT_EQ(ask({"GET", ""}), Reply::string(""));
    EXPECT_EQ(integer({"DBSIZE"}), 2);
}

TEST_F(ModelRedisTest, a_copy_is_a_snapshot) {
    ask({"SET", "k", "before"});
    ModelRedis snapshot = model_;
    ask({"SET", "k", "after"});
    EXPECT_EQ(snapshot.execute(command({"GET", "k"}), now_), Reply::string("before"));
    EXPECT_EQ(ask({"GET", "k"}), Reply::string("after"));
}

TEST_F(ModelRedisTest, time_is_told_in_seconds_and_microseconds) {
    now_ = 12s + 34us;
    EXPECT_EQ(ask({"TIME"}), Reply::array({Reply::string("12"), Reply::string("34")}));
}

TEST_F(ModelRedisTest, what_redis_could_do_and_the_model_cannot_is_an_error_that_says_so) {
    ask({"SET", "k", "v"});
    const std::string beyond = "ERR kunci's model server does not support ";
    EXPECT_EQ(error({"SET", "k", "v", "GET"}), beyond + "SET get");
    EXPECT_EQ(error({"SET", "k", "v", "PXAT", "1"}), beyond + "SET pxat");
    EXPECT_EQ(error({"PEXPIRE", "k", "1", "NX"}), beyond + "pexpire nx");
    EXPECT_EQ(error({"EVAL", "return 1", "0"}), beyond + "scripts other than kunci's own");
    EXPECT_EQ(error({"SCRIPT", "LOAD", "return 1"}), beyond + "scripts other than kunci's own");
    EXPECT_EQ(ask({"GET", "k"}), Reply::string("v"));
}

struct BadCommand {
    std::vector<std::string_view> arguments;
    std::string_view error;
};

TEST_F(ModelRedisTest, errors_have_the_texts_of_redis) {
    const std::vector<BadCommand> table{
        {{"NOPE", "a", "b\r\nc"}, "ERR unknown command 'NOPE', with args beginning with: 'a' 'b  c' "},
        {{"GET"}, "ERR wrong number of arguments for 'get' command"},
        {{"SET", "k"}, "ERR wrong number of arguments for 'set' command"},
        {{"HSET", "h", "a"}, "ERR wrong number of arguments for 'hset' command"},
        {{"HSET", "h", "a", "b", "c"}, "ERR wrong number of arguments for 'hset' command"},
        {{"PING", "a", "b"}, "ERR wrong number of arguments for 'ping' command"},
        {{"SCRIPT", "LOAD"}, "ERR wrong number of arguments for 'script|load' command"},
        {{"SCRIPT", "Nope"}, "ERR unknown subcommand 'Nope'. Try SCRIPT HELP."},
        {{"SCRIPT", "FLUSH", "x"}, "ERR SCRIPT FLUSH only support SYNC|ASYNC option"},
        {{"FLUSHALL", "x"}, "ERR syntax error"},
        {{"SET", "k", "v", "NX", "XX"}, "ERR syntax error"},
        {{"SET", "k", "v", "PX"}, "ERR syntax error"},
        {{"SET", "k", "v", "EX", "1", "PX", "1"}, "ERR syntax error"},
        {{"SET", "k", "v", "PX", "1", "KEEPTTL"}, "ERR syntax error"},
        {{"SET", "k", "v", "PX", "1.5"}, "ERR value is not an integer or out of range"},
        {{"SET", "k", "v", "PX", "+5"}, "ERR value is not an integer or out of range"},
        {{"SET", "k", "v", "PX", "05"}, "ERR value is not an integer or out of range"},
        {{"SET", "k", "v", "PX", "0"}, "ERR invalid expire time in 'set' command"},
        {{"SET", "k", "v", "PX", "-1"}, "ERR invalid expire time in 'set' command"},
        {{"SET", "k", "v", "EX", "9223372036854775807"}, "ERR invalid expire time in 'set' command"},
        {{"SET", "k", "v", "PX", "9223372036854775807"}, "ERR invalid expire time in 'set' command"},
        {{"PEXPIRE", "none", "9223372036854775807"}, "ERR invalid expire time in 'pexpire' command"},
        {{"EXPIRE", "none", "-9223372036854775808"}, "ERR invalid expire time in 'expire' command"},
        {{"PEXPIRE", "none", "x"}, "ERR value is not an integer or out of range"},
        {{"PEXPIRE", "none", "x", "foo"}, "ERR Unsupported option foo"},
        {{"GET", "list"}, "WRONGTYPE Operation against a key holding the wrong kind of value"},
        {{"HSET", "list", "a", "b"}, "WRONGTYPE Operation against a key holding the wrong kind of value"},
        {{"EVALSHA", "abc", "x"}, "NOSCRIPT No matching script. Please use EVAL."},
        {{"EVAL", "x", "1"}, "ERR Number of keys can't be greater than number of args"},
        {{"EVAL", "x", "-1"}, "ERR Number of keys can't be negative"},
        {{"EVAL", "x", "z"}, "ERR value is not an integer or out of range"},
    };
    ask({"RPUSH", "list", "a"});
    for (const BadCommand& bad : table) {
        EXPECT_EQ(model_.execute(bad.arguments, now_), Reply::error(std::string{bad.error}));
    }
}

// ----- Scripts -------------------------------------------------------------------------------------------

class ModelScriptsTest : public ModelRedisTest {
  protected:
    Reply evaluate(const scripts::Script& script, std::initializer_list<std::string_view> arguments) {
        Command call = scripts::call(script, scripts::Form::text, 1);
        for (const std::string_view argument : arguments) call.add(argument);
        return model_.execute(call, now_);
    }
    static Reply pair(std::int64_t first, std::int64_t second) {
        return Reply::array({Reply::integer(first), Reply::integer(second)});
    }
};

TEST_F(ModelScriptsTest, a_digest_is_known_only_once_the_text_has_come) {
    for (const scripts::Script& script : {scripts::claim, scripts::refresh, scripts::release}) {
        EXPECT_EQ(error({"EVALSHA", script.sha1, "1", "k", "t", "9"}),
                  "NOSCRIPT No matching script. Please use EVAL.");
        evaluate(script, {"k", "other", "1000"});
        EXPECT_NE(error({"EVALSHA", script.sha1, "1", "k", "t", "9"}),
                  "NOSCRIPT No matching script. Please use EVAL.");
    }
    EXPECT_EQ(ask({"SCRIPT", "EXISTS", scripts::claim.sha1, "other"}), pair(1, 0));
    EXPECT_EQ(ask({"SCRIPT", "FLUSH"}), ok);
    EXPECT_EQ(ask({"SCRIPT", "EXISTS", scripts::claim.sha1, scripts::release.sha1}), pair(0, 0));
    EXPECT_EQ(ask({"SCRIPT", "LOAD", scripts::claim.text}), Reply::string(std::string{scripts::claim.sha1}));
    EXPECT_EQ(ask({"SCRIPT", "EXISTS", scripts::claim.sha1, scripts::release.sha1}), pair(1, 0));
}

TEST_F(ModelScriptsTest, claim_takes_what_is_free_extends_what_is_mine_and_refuses_the_rest) {
    EXPECT_EQ(evaluate(scripts::claim, {"k", "mine", "1000"}), pair(1, -2));
    now_ += 400ms;
    EXPECT_EQ(evaluate(scripts::claim, {"k", "mine", "500"}), pair(1, 600));
    EXPECT_EQ(integer({"PTTL", "k"}), 600) << "never shortened";
    EXPECT_EQ(evaluate(scripts::claim, {"k", "mine", "1000"}), pair(1, 600));
    EXPECT_EQ(integer({"PTTL", "k"}), 1000);
    EXPECT_EQ(evaluate(scripts::claim, {"k", "theirs", "9000"}), pair(0, 1000));
    EXPECT_EQ(ask({"GET", "k"}), Reply::string("mine"));
    EXPECT_EQ(integer({"PTTL", "k"}), 1000);
    now_ += 1001ms;
    EXPECT_EQ(evaluate(scripts::claim, {"k", "theirs", "9000"}), pair(1, -2));
}

TEST_F(ModelScriptsTest, refresh_extends_only_and_never_creates) {
    EXPECT_EQ(evaluate(scripts::refresh, {"k", "mine", "1000"}), Reply::integer(-2));
    EXPECT_EQ(integer({"EXISTS", "k"}), 0);
    ask({"SET", "k", "mine", "PX", "1000"});
    EXPECT_EQ(evaluate(scripts::refresh, {"k", "theirs", "9000"}), Reply::integer(-2));
    EXPECT_EQ(evaluate(scripts::refresh, {"k", "mine", "500"}), Reply::integer(1000));
    EXPECT_EQ(integer({"PTTL", "k"}), 1000);
    EXPECT_EQ(evaluate(scripts::refresh, {"k", "mine", "2000"}), Reply::integer(1000));
    EXPECT_EQ(integer({"PTTL", "k"}), 2000);
    ask({"PERSIST", "k"});
    EXPECT_EQ(evaluate(scripts::refresh, {"k", "mine", "2000"}), Reply::integer(-1));
    EXPECT_EQ(integer({"PTTL", "k"}), 2000);
}

TEST_F(ModelScriptsTest, release_deletes_what_is_mine_and_nothing_else) {
    ask({"SET", "k", "mine", "PX", "1000"});
    EXPECT_EQ(evaluate(scripts::release, {"k", "theirs"}), Reply::integer(0));
    EXPECT_EQ(integer({"EXISTS", "k"}), 1);
    EXPECT_EQ(evaluate(scripts::release, {"k", "mine"}), Reply::integer(1));
    EXPECT_EQ(integer({"EXISTS", "k"}), 0);
    EXPECT_EQ(evaluate(scripts::release, {"k", "mine"}), Reply::integer(0));
}

TEST_F(ModelScriptsTest, a_ttl_below_one_millisecond_is_refused_and_changes_nothing) {
    ask({"SET", "k", "mine", "PX", "1000"});
    for (const std::string_view ttl : {"0", "-5", "0.5"}) {
        const Reply refused = Reply::error("ERR kunci: the ttl must be at least 1 ms");
        EXPECT_EQ(evaluate(scripts::claim, {"k", "mine", ttl}), refused);
        EXPECT_EQ(evaluate(scripts::refresh, {"k", "mine", ttl}), refused);
    }
    EXPECT_EQ(integer({"PTTL", "k"}), 1000);
}

TEST_F(ModelScriptsTest, an_error_inside_a_script_names_the_script_and_the_line) {
    ask({"RPUSH", "list", "a"});
    EXPECT_EQ(evaluate(scripts::release, {"list", "mine"}).text(),
              "WRONGTYPE Operation against a key holding the wrong kind of value script: " +
                  std::string{scripts::release.sha1} + ", on @user_script:2.");
    EXPECT_EQ(evaluate(scripts::claim, {"k", "mine"}).text(),
              "ERR user_script:2: attempt to compare nil with number script: " +
                  std::string{scripts::claim.sha1} + ", on @user_script:2.");
    EXPECT_EQ(evaluate(scripts::claim, {"k", "mine", "1e5"}).text(),
              "ERR value is not an integer or out of range script: " + std::string{scripts::claim.sha1} +
                  ", on @user_script:6.");
}

// ----- The server around the model -----------------------------------------------------------------------

TEST(InMemoryServer, lets_keys_expire_by_the_clock_of_the_test) {
    ManualClock clock;
    const InMemoryServer server{clock};
    server.command({"SET", "k", "v", "PX", "30000"});
    clock.advance(30'000ms);
    EXPECT_EQ(server.command({"EXISTS", "k"}), Reply::integer(1));
    clock.advance(1ms);
    EXPECT_EQ(server.command({"EXISTS", "k"}), Reply::integer(0));
}

TEST(InMemoryServer, shows_all_its_connections_the_same_keys) {
    ManualClock clock;
    const InMemoryServer server{clock};
    InMemoryConnection a = server.connect();
    InMemoryConnection b = a;
    InMemoryConnection c = server.connect();
    EXPECT_EQ(a.execute(command({"SET", "k", "v"}), clock.now() + 1s).reply(), ok);
    EXPECT_EQ(b.execute(command({"GET", "k"}), clock.now() + 1s).reply(), Reply::string("v"));
    EXPECT_EQ(c.execute(command({"GET", "k"}), clock.now() + 1s).reply(), Reply::string("v"));
}

TEST(InMemoryServer, lives_on_in_its_connections) {
    ManualClock clock;
    std::optional<InMemoryServer> server{clock};
    InMemoryConnection connection = server->connect();
    server->command({"SET", "k", "v"});
    server.reset();
    EXPECT_EQ(connection.execute(command({"GET", "k"}), clock.now() + 1s).reply(), Reply::string("v"));
}

TEST(InMemoryServer, executes_nothing_whose_deadline_has_passed) {
    ManualClock clock;
    const InMemoryServer server{clock};
    InMemoryConnection connection = server.connect();
    const Outcome outcome = connection.execute(command({"SET", "k", "v"}), clock.now());
    ASSERT_FALSE(outcome.has_reply());
    EXPECT_EQ(outcome.fault().delivery, kunci::Fault::Delivery::not_sent);
    EXPECT_EQ(outcome.fault().code, kunci::Errc::unreachable);
    EXPECT_EQ(server.command({"EXISTS", "k"}), Reply::integer(0));
    EXPECT_EQ(server.command_count(), 0U);
    EXPECT_TRUE(connection.execute(command({"PING"}), clock.now() + 1ns).has_reply());
}

TEST(InMemoryServer, writes_down_what_came_over_connections) {
    ManualClock clock;
    InMemoryServer server{clock};
    InMemoryConnection connection = server.connect();
    connection.execute(command({"SET", "k", "v"}), clock.now() + 1s);
    connection.execute(command({"NOPE"}), clock.now() + 1s, command({"DEL", "k"}));
    server.command({"GET", "k"});
    using Log = std::vector<std::vector<std::string>>;
    EXPECT_EQ(server.commands(), (Log{{"SET", "k", "v"}, {"NOPE"}}));
    EXPECT_EQ(server.command_count(), 2U);
    server.clear_commands();
    EXPECT_EQ(server.commands(), Log{});
}

TEST(InMemoryServer, serves_many_threads_one_command_at_a_time) {
    constexpr int threads = 8;
    constexpr int pushes = 200;
    ManualClock clock;
    const InMemoryServer server{clock};
    InMemoryConnection connection = server.connect();
    std::vector<std::jthread> workers;
    for (int i = 0; i < threads; ++i) {
        workers.emplace_back([&] {
            for (int n = 0; n < pushes; ++n) {
                connection.execute(command({"RPUSH", "k", "x"}), kunci::Deadline::max());
            }
        });
    }
    workers.clear();
    EXPECT_EQ(server.command({"RPUSH", "k", "x"}), Reply::integer(threads * pushes + 1));
    EXPECT_EQ(server.command_count(), static_cast<std::size_t>(threads * pushes));
}

}  // namespace
