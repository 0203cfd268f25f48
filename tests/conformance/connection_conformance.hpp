#pragma once

#include <kunci/connection/command.hpp>
#include <kunci/connection/connection.hpp>
#include <kunci/connection/outcome.hpp>
#include <kunci/connection/reply.hpp>
#include <kunci/scripts/lock_scripts.hpp>
#include <kunci/scripts/script.hpp>
#include <kunci/time.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

// What every Connection must do, whatever is behind it. A new kind is tested by one more `Backend`:
//
//   backend.connect()      a new connection to an empty server of the backend's own
//   backend.now()          the present instant of the clock by which its deadlines are meant
//   backend.command({...}) what the server answers to somebody else

namespace kunci::test {

template <typename Backend>
class ConnectionConformance : public ::testing::Test {
  protected:
    using Connection = decltype(std::declval<Backend&>().connect());

    static Command command(std::initializer_list<std::string_view> arguments) {
        Command result{*arguments.begin()};
        for (const auto* it = arguments.begin() + 1; it != arguments.end(); ++it) result.add(*it);
        return result;
    }

    [[nodiscard]] Deadline soon() { return backend_.now() + std::chrono::seconds{10}; }

    Reply ask(Connection& connection, const Command& question) {
        const Outcome outcome = connection.execute(question, soon());
        if (outcome.has_reply()) return outcome.reply();
        return Reply::error("no reply, but a fault: " + outcome.fault().message);
    }
    Reply ask(std::initializer_list<std::string_view> arguments) {
        return ask(connection_, command(arguments));
    }

    Reply evaluate(const scripts::Script& script, scripts::Form form,
                   std::initializer_list<std::string_view> arguments) {
        Command call = scripts::call(script, form, 1);
        for (const std::string_view argument : arguments) call.add(argument);
        return ask(connection_, call);
    }

    static Reply ok() { return Reply::status("OK"); }

    Backend backend_;
    Connection connection_ = backend_.connect();
};

TYPED_TEST_SUITE_P(ConnectionConformance);

TYPED_TEST_P(ConnectionConformance, every_kind_of_reply_arrives_as_such) {
    EXPECT_EQ(this->ask({"PING"}), Reply::status("PONG"));
    EXPECT_EQ(this->ask({"PING", "hello"}), Reply::string("hello"));
    EXPECT_EQ(this->ask({"GET", "none"}), Reply::nil());
    EXPECT_EQ(this->ask({"EXISTS", "none"}), Reply::integer(0));
    EXPECT_EQ(this->ask({"PTTL", "none"}), Reply::integer(-2));
    EXPECT_EQ(this->ask({"SET", "k", ""}), this->ok());
    EXPECT_EQ(this->ask({"GET", "k"}), Reply::string("")) << "an empty string is not nil";
    EXPECT_EQ(this->ask({"SCRIPT", "EXISTS", "a", "b"}),
              Reply::array({Reply::integer(0), Reply::integer(0)}));
}

TYPED_TEST_P(ConnectionConformance, a_server_error_is_a_reply_with_its_words) {
    EXPECT_EQ(this->ask({"GET"}), Reply::error("ERR wrong number of arguments for 'get' command"));
    EXPECT_EQ(this->ask({"RPUSH", "list", "a"}), Reply::integer(1));
    EXPECT_EQ(this->ask({"GET", "list"}),
              Reply::error("WRONGTYPE Operation against a key holding the wrong kind of value"));
    EXPECT_EQ(this->ask({"SET", "k", "v", "PX", "0"}),
              Reply::error("ERR invalid expire time in 'set' command"));
    EXPECT_EQ(this->ask({"PING"}), Reply::status("PONG")) << "an error ends nothing";
}

TYPED_TEST_P(ConnectionConformance, arguments_and_replies_are_any_bytes) {
    std::string bytes;
    for (int c = 0; c < 256; ++c) bytes += static_cast<char>(c);
    bytes += "\r\n$-1\r\n";
    EXPECT_EQ(this->ask({"ECHO", bytes}), Reply::string(bytes));
    EXPECT_EQ(this->ask({"SET", bytes, bytes}), this->ok());
    EXPECT_EQ(this->ask({"GET", bytes}), Reply::string(bytes));
    EXPECT_EQ(this->backend_.command({"GET", bytes}), Reply::string(bytes));
    EXPECT_EQ(this->ask({"SET", "", "empty key"}), this->ok());
    EXPECT_EQ(this->ask({"GET", ""}), Reply::string("empty key"));
}

TYPED_TEST_P(ConnectionConformance, a_large_value_goes_both_ways) {
    std::string bytes;
    for (std::size_t i = 0; i < 4'000'000; ++i) bytes += static_cast<char>(i * 31 % 251);
    EXPECT_EQ(this->ask({"SET", "k", bytes}), this->ok());
    EXPECT_EQ(this->ask({"GET", "k"}), Reply::string(bytes));
    EXPECT_EQ(this->ask({"PING"}), Reply::status("PONG"));
}

TYPED_TEST_P(ConnectionConformance, a_command_may_have_as_many_arguments_as_fit) {
    Command exists{"EXISTS"};
    while (exists.size() < Command::capacity) exists.add("k");
    EXPECT_EQ(this->ask({"SET", "k", "v"}), this->ok());
    EXPECT_EQ(this->ask(this->connection_, exists), Reply::integer(Command::capacity - 1));
}

TYPED_TEST_P(ConnectionConformance, an_unknown_digest_is_answered_noscript_until_the_text_has_come) {
    const Reply noscript = Reply::error("NOSCRIPT No matching script. Please use EVAL.");
    using scripts::Form;
    EXPECT_EQ(this->evaluate(scripts::release, Form::digest, {"k", "t"}), noscript);
    EXPECT_EQ(this->evaluate(scripts::release, Form::text, {"k", "t"}), Reply::integer(0));
    EXPECT_EQ(this->evaluate(scripts::release, Form::digest, {"k", "t"}), Reply::integer(0));
    EXPECT_EQ(this->backend_.command({"SCRIPT", "FLUSH"}), this->ok());
    EXPECT_EQ(this->evaluate(scripts::release, Form::digest, {"k", "t"}), noscript);
}

TYPED_TEST_P(ConnectionConformance, scripts_answer_what_their_first_line_says) {
    using scripts::Form;
    EXPECT_EQ(this->evaluate(scripts::claim, Form::text, {"k", "mine", "600000"}),
              Reply::array({Reply::integer(1), Reply::integer(-2)}));
    const Reply refused = this->evaluate(scripts::claim, Form::digest, {"k", "theirs", "600000"});
    ASSERT_EQ(refused.elements().size(), 2U) << refused.text();
    EXPECT_EQ(refused.elements()[0], Reply::integer(0));
    EXPECT_GT(refused.elements()[1].integer(), 500'000);
    EXPECT_LE(refused.elements()[1].integer(), 600'000);
    EXPECT_GT(this->evaluate(scripts::refresh, Form::text, {"k", "mine", "900000"}).integer(), 500'000);
    EXPECT_EQ(this->evaluate(scripts::refresh, Form::digest, {"k", "theirs", "900000"}), Reply::integer(-2));
    EXPECT_GT(this->ask({"PTTL", "k"}).integer(), 800'000);
    EXPECT_EQ(this->evaluate(scripts::release, Form::text, {"k", "theirs"}), Reply::integer(0));
    EXPECT_EQ(this->evaluate(scripts::release, Form::text, {"k", "mine"}), Reply::integer(1));
    EXPECT_EQ(this->ask({"EXISTS", "k"}), Reply::integer(0));
}

TYPED_TEST_P(ConnectionConformance, an_error_inside_a_script_is_a_reply) {
    EXPECT_EQ(this->ask({"RPUSH", "list", "a"}), Reply::integer(1));
    EXPECT_EQ(this->evaluate(scripts::release, scripts::Form::text, {"list", "t"}),
              Reply::error("WRONGTYPE Operation against a key holding the wrong kind of value script: " +
                           std::string{scripts::release.sha1} + ", on @user_script:2."));
    EXPECT_EQ(this->evaluate(scripts::claim, scripts::Form::text, {"k", "t", "0"}),
              Reply::error("ERR kunci: the ttl must be at least 1 ms"));
}

TYPED_TEST_P(ConnectionConformance, each_of_many_threads_gets_the_replies_to_its_own_commands_in_order) {
    constexpr int threads = 8;
    constexpr int rounds = 200;
    std::vector<std::string> wrong(threads);
    std::vector<std::jthread> workers;
    for (std::size_t t = 0; t < threads; ++t) {
        workers.emplace_back([&, t] {
            const std::string list = "list " + std::to_string(t);
            for (int n = 1; n <= rounds && wrong[t].empty(); ++n) {
                const std::string text = list + ' ' + std::to_string(n);
                const Reply echo = this->ask(this->connection_, this->command({"ECHO", text}));
                if (echo != Reply::string(text)) wrong[t] = text + " became " + echo.text();
                const Reply length = this->ask(this->connection_, this->command({"RPUSH", list, text}));
                if (length != Reply::integer(n)) wrong[t] = text + " was pushed out of order";
            }
        });
    }
    workers.clear();
    EXPECT_EQ(wrong, std::vector<std::string>(threads));
}

TYPED_TEST_P(ConnectionConformance, a_deadline_that_has_passed_is_no_exception_and_harms_no_later_command) {
    for (const Deadline passed :
         {this->backend_.now(), this->backend_.now() - std::chrono::hours{1}, Deadline{}, Deadline::min()}) {
        this->backend_.command({"DEL", "k"});
        const Outcome outcome = this->connection_.execute(this->command({"SET", "k", "v"}), passed);
        if (outcome.has_reply()) {
            EXPECT_EQ(outcome.reply(), this->ok());
        } else {
            EXPECT_EQ(outcome.fault().delivery, Fault::Delivery::not_sent) << outcome.fault().message;
            EXPECT_EQ(group_of(outcome.fault().code), Errc::unreachable);
            EXPECT_EQ(this->backend_.command({"EXISTS", "k"}), Reply::integer(0)) << "not sent, they said";
        }
        EXPECT_EQ(this->ask({"ECHO", "next"}), Reply::string("next"));
    }
}

TYPED_TEST_P(ConnectionConformance, a_deadline_may_be_as_far_away_as_there_is_time) {
    const Outcome outcome = this->connection_.execute(this->command({"PING"}), Deadline::max());
    ASSERT_TRUE(outcome.has_reply()) << outcome.fault().message;
    EXPECT_EQ(outcome.reply(), Reply::status("PONG"));
}

TYPED_TEST_P(ConnectionConformance, a_moved_connection_goes_on_where_it_was) {
    EXPECT_EQ(this->ask({"SET", "k", "v"}), this->ok());
    auto moved = std::move(this->connection_);
    EXPECT_EQ(this->ask(moved, this->command({"GET", "k"})), Reply::string("v"));
    this->connection_ = std::move(moved);
    EXPECT_EQ(this->ask({"GET", "k"}), Reply::string("v"));
}

TYPED_TEST_P(ConnectionConformance, all_connections_see_the_same_server) {
    auto other = this->backend_.connect();
    EXPECT_EQ(this->ask(other, this->command({"SET", "k", "v", "NX", "PX", "600000"})), this->ok());
    EXPECT_EQ(this->ask({"SET", "k", "w", "NX", "PX", "600000"}), Reply::nil());
    EXPECT_EQ(this->backend_.command({"GET", "k"}), Reply::string("v"));
}

TYPED_TEST_P(ConnectionConformance, the_command_need_not_outlive_the_call) {
    for (int n = 1; n <= 3; ++n) {
        const auto temporary = std::make_unique<Command>(this->command({"RPUSH", "list", "element"}));
        EXPECT_EQ(this->ask(this->connection_, *temporary), Reply::integer(n));
    }
}

TYPED_TEST_P(ConnectionConformance, a_command_that_got_its_reply_is_not_recalled) {
    if constexpr (RecallingConnection<typename TestFixture::Connection>) {
        const Outcome outcome = this->connection_.execute(this->command({"SET", "k", "v"}), this->soon(),
                                                          this->command({"DEL", "k"}));
        ASSERT_TRUE(outcome.has_reply()) << outcome.fault().message;
        EXPECT_EQ(outcome.reply(), this->ok());
        EXPECT_EQ(this->ask({"GET", "k"}), Reply::string("v"));
    }
}

REGISTER_TYPED_TEST_SUITE_P(ConnectionConformance, every_kind_of_reply_arrives_as_such,
                            a_server_error_is_a_reply_with_its_words, arguments_and_replies_are_any_bytes,
                            a_large_value_goes_both_ways, a_command_may_have_as_many_arguments_as_fit,
                            an_unknown_digest_is_answered_noscript_until_the_text_has_come,
                            scripts_answer_what_their_first_line_says, an_error_inside_a_script_is_a_reply,
                            each_of_many_threads_gets_the_replies_to_its_own_commands_in_order,
                            a_deadline_that_has_passed_is_no_exception_and_harms_no_later_command,
                            a_deadline_may_be_as_far_away_as_there_is_time,
                            a_moved_connection_goes_on_where_it_was, all_connections_see_the_same_server,
                            the_command_need_not_outlive_the_call,
                            a_command_that_got_its_reply_is_not_recalled);

}  // namespace kunci::test
