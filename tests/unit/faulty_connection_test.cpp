#include <kunci/connection/connection.hpp>
#include <kunci/testing/faulty_connection.hpp>
#include <kunci/testing/in_memory_server.hpp>
#include <kunci/testing/manual_clock.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using kunci::Command;
using kunci::Deadline;
using kunci::Errc;
using kunci::Fault;
using kunci::Outcome;
using kunci::Reply;
using kunci::TimePoint;
using kunci::testing::FaultPlan;
using kunci::testing::FaultyConnection;
using kunci::testing::InMemoryConnection;
using kunci::testing::InMemoryServer;
using kunci::testing::ManualClock;

/// A connection to an in-memory server on which a plan lets things go wrong.
class FaultyConnectionTest : public ::testing::Test {
  protected:
    static Command command(std::initializer_list<std::string_view> arguments) {
        Command result{*arguments.begin()};
        for (const auto* it = arguments.begin() + 1; it != arguments.end(); ++it) result.add(*it);
        return result;
    }
    Outcome send(std::initializer_list<std::string_view> arguments) {
        return connection_.execute(command(arguments), clock_.now() + timeout);
    }
    Outcome send_with_recall(std::initializer_list<std::string_view> arguments) {
        return connection_.execute(command(arguments), clock_.now() + timeout, command({"DEL", "k"}));
    }
    std::string stored() { return server_.command({"GET", "k"}).text(); }

    static void expect_unknown(const Outcome& outcome) {
        ASSERT_FALSE(outcome.has_reply());
        EXPECT_EQ(outcome.fault().delivery, Fault::Delivery::maybe_executed);
        EXPECT_EQ(outcome.fault().code, Errc::maybe_executed);
        EXPECT_FALSE(outcome.fault().message.empty());
    }
    static void expect_unreachable(const Outcome& outcome) {
        ASSERT_FALSE(outcome.has_reply());
        EXPECT_EQ(outcome.fault().delivery, Fault::Delivery::not_sent);
        EXPECT_EQ(outcome.fault().code, Errc::unreachable);
        EXPECT_FALSE(outcome.fault().message.empty());
    }

    static constexpr auto timeout = 1s;
    ManualClock clock_;
    TimePoint start_ = clock_.now();
    InMemoryServer server_{clock_};
    FaultPlan plan_{clock_};
    FaultyConnection<InMemoryConnection> connection_{server_.connect(), plan_};
};

TEST_F(FaultyConnectionTest, without_a_fault_is_the_connection_it_wraps) {
    EXPECT_EQ(send({"SET", "k", "v"}).reply(), Reply::status("OK"));
    EXPECT_EQ(send_with_recall({"GET", "k"}).reply(), Reply::string("v"));
    EXPECT_EQ(clock_.now(), start_);
    EXPECT_TRUE(plan_.used_up());
    EXPECT_EQ(server_.command_count(), 2U);
}

TEST_F(FaultyConnectionTest, a_lost_request_is_not_executed_and_noticed_at_the_deadline) {
    plan_.drop_request();
    EXPECT_FALSE(plan_.used_up());
    expect_unknown(send({"SET", "k", "v"}));
    EXPECT_EQ(clock_.now(), start_ + timeout);
    EXPECT_EQ(server_.command_count(), 0U);
    EXPECT_TRUE(plan_.used_up());
    EXPECT_TRUE(send({"SET", "k", "v"}).has_reply()) << "one fault hits one command";
}

TEST_F(FaultyConnectionTest, a_lost_reply_hides_that_the_command_was_executed) {
    plan_.drop_reply();
    expect_unknown(send({"SET", "k", "v"}));
    EXPECT_EQ(clock_.now(), start_ + timeout);
    EXPECT_EQ(stored(), "v");
}

TEST_F(FaultyConnectionTest, a_disconnected_command_is_certainly_not_sent) {
    plan_.disconnect();
    expect_unreachable(send_with_recall({"SET", "k", "v"}));
    EXPECT_EQ(clock_.now(), start_);
    EXPECT_EQ(server_.command_count(), 0U) << "what was not sent needs no recall";
    EXPECT_TRUE(send({"SET", "k", "v"}).has_reply());
}

TEST_F(FaultyConnectionTest, a_delayed_command_is_executed_at_the_later_time) {
    server_.command({"SET", "k", "old", "PX", "300"});
    plan_.delay(400ms);
    EXPECT_EQ(send({"SET", "k", "v", "NX"}).reply(), Reply::status("OK"));
    EXPECT_EQ(clock_.now(), start_ + 400ms);
    EXPECT_EQ(stored(), "v");
}

TEST_F(FaultyConnectionTest, a_command_delayed_to_its_deadline_is_executed_and_its_reply_is_lost) {
    plan_.delay(timeout);
    expect_unknown(send({"SET", "k", "v"}));
    EXPECT_EQ(clock_.now(), start_ + timeout);
    EXPECT_EQ(stored(), "v");
    plan_.delay(60s);
    expect_unknown(send({"SET", "k", "w"}));
    EXPECT_EQ(clock_.now(), start_ + timeout + 60s);
    EXPECT_EQ(stored(), "w");
}

TEST_F(FaultyConnectionTest, a_planned_reply_is_answered_without_executing_anything) {
    plan_.reply(Reply::error("OOM command not allowed when used memory > 'maxmemory'."));
    const Outcome outcome = send({"SET", "k", "v"});
    EXPECT_EQ(outcome.reply(), Reply::error("OOM command not allowed when used memory > 'maxmemory'."));
    EXPECT_EQ(server_.command_count(), 0U);
}

TEST_F(FaultyConnectionTest, a_fault_waits_for_the_command_it_is_meant_for) {
    plan_.drop_request({.command = "EvalSha"});
    EXPECT_TRUE(send({"SET", "k", "v"}).has_reply());
    EXPECT_TRUE(send({"EVAL", "x", "0"}).has_reply());
    EXPECT_FALSE(plan_.used_up());
    expect_unknown(send({"evalsha", "x", "0"}));
    EXPECT_TRUE(plan_.used_up());
}

TEST_F(FaultyConnectionTest, a_fault_can_hit_several_commands) {
    plan_.disconnect({.command = "SET", .times = 2});
    expect_unreachable(send({"SET", "k", "1"}));
    EXPECT_TRUE(send({"PING"}).has_reply());
    expect_unreachable(send({"SET", "k", "2"}));
    EXPECT_TRUE(send({"SET", "k", "3"}).has_reply());
    plan_.disconnect({.times = 0});
    EXPECT_TRUE(plan_.used_up());
}

TEST_F(FaultyConnectionTest, faults_hit_one_after_the_other_in_the_order_of_the_plan) {
    plan_.reply(Reply::integer(1));
    plan_.disconnect({.command = "PING"});
    plan_.reply(Reply::integer(2));
    EXPECT_EQ(send({"PING"}).reply(), Reply::integer(1));
    EXPECT_EQ(send({"SET", "k", "v"}).reply(), Reply::integer(2));
    expect_unreachable(send({"PING"}));
}

TEST_F(FaultyConnectionTest, copies_of_a_plan_are_the_same_plan) {
    FaultPlan copy = plan_;
    copy.reply(Reply::integer(7));
    EXPECT_EQ(send({"PING"}).reply(), Reply::integer(7));
    EXPECT_TRUE(copy.used_up());
}

TEST_F(FaultyConnectionTest, the_recall_follows_a_command_that_was_given_up) {
    plan_.drop_reply();
    expect_unknown(send_with_recall({"SET", "k", "v"}));
    EXPECT_EQ(stored(), "");
    server_.command({"SET", "k", "old"});
    plan_.drop_request();
    expect_unknown(send_with_recall({"SET", "k", "v"}));
    EXPECT_EQ(stored(), "");
    plan_.delay(timeout + 1h);
    expect_unknown(send_with_recall({"SET", "k", "v"}));
    EXPECT_EQ(stored(), "");
    using Log = std::vector<std::vector<std::string>>;
    EXPECT_EQ(server_.commands(),
              (Log{{"SET", "k", "v"}, {"DEL", "k"}, {"DEL", "k"}, {"SET", "k", "v"}, {"DEL", "k"}}));
}

TEST_F(FaultyConnectionTest, a_command_that_got_its_reply_is_not_recalled) {
    plan_.delay(timeout - 1ns);
    EXPECT_TRUE(send_with_recall({"SET", "k", "v"}).has_reply());
    plan_.reply(Reply::nil());
    EXPECT_TRUE(send_with_recall({"SET", "k", "w"}).has_reply());
    EXPECT_EQ(stored(), "v");
}

TEST_F(FaultyConnectionTest, the_recall_uses_up_no_fault) {
    plan_.drop_reply({.command = "SET"});
    plan_.disconnect({.command = "DEL"});
    expect_unknown(send_with_recall({"SET", "k", "v"}));
    EXPECT_EQ(stored(), "");
    EXPECT_FALSE(plan_.used_up());
}

TEST_F(FaultyConnectionTest, nothing_reaches_the_server_while_the_link_is_cut) {
    plan_.reply(Reply::integer(7));
    plan_.cut_link();
    EXPECT_TRUE(plan_.link_is_cut());
    expect_unreachable(send({"SET", "k", "v"}));
    expect_unreachable(send_with_recall({"SET", "k", "v"}));
    EXPECT_EQ(server_.command_count(), 0U);
    plan_.mend_link();
    EXPECT_EQ(send({"SET", "k", "v"}).reply(), Reply::integer(7)) << "planned faults wait for the link";
    EXPECT_TRUE(send({"SET", "k", "v"}).has_reply());
}

TEST_F(FaultyConnectionTest, a_fault_can_take_the_link_with_it_and_the_recall_too) {
    plan_.drop_reply({.then_cut_link = true});
    expect_unknown(send_with_recall({"SET", "k", "v"}));
    EXPECT_EQ(stored(), "v");
    expect_unreachable(send({"DEL", "k"}));
    plan_.mend_link();
    EXPECT_EQ(send({"DEL", "k"}).reply(), Reply::integer(1));
}

TEST_F(FaultyConnectionTest, a_command_whose_deadline_has_passed_is_not_sent_and_uses_up_no_fault) {
    plan_.drop_reply();
    expect_unreachable(connection_.execute(command({"SET", "k", "v"}), clock_.now()));
    EXPECT_FALSE(plan_.used_up());
}

TEST_F(FaultyConnectionTest, without_a_clock_a_loss_shows_at_once_and_a_delay_makes_no_sense) {
    FaultPlan plan;
    FaultyConnection connection{server_.connect(), plan};
    plan.drop_reply();
    expect_unknown(
        connection.execute(command({"SET", "k", "v"}), clock_.now() + timeout, command({"DEL", "k"})));
    EXPECT_EQ(stored(), "v") << "the deadline has not come: nothing may be recalled yet";
    EXPECT_EQ(clock_.now(), start_);
    EXPECT_THROW(plan.delay(1s), std::logic_error);
}

TEST_F(FaultyConnectionTest, a_fault_below_it_is_told_as_it_is) {
    FaultPlan inner_plan{clock_};
    FaultyConnection connection{FaultyConnection{server_.connect(), inner_plan}, plan_};
    inner_plan.disconnect();
    plan_.drop_reply();
    expect_unreachable(connection.execute(command({"SET", "k", "v"}), clock_.now() + timeout));
}

TEST_F(FaultyConnectionTest, each_fault_hits_one_command_only_however_many_threads_send) {
    constexpr std::size_t faults = 100;
    plan_.reply(Reply::integer(7), {.times = faults});
    constexpr int threads = 8;
    constexpr int commands = 50;
    std::vector<std::size_t> hits(threads);
    std::vector<std::jthread> workers;
    for (std::size_t i = 0; i < threads; ++i) {
        workers.emplace_back([&, i] {
            for (int n = 0; n < commands; ++n) {
                const Outcome outcome = connection_.execute(command({"PING"}), Deadline::max());
                if (outcome.reply() == Reply::integer(7)) ++hits[i];
            }
        });
    }
    workers.clear();
    std::size_t total = 0;
    for (const std::size_t hit : hits) total += hit;
    EXPECT_EQ(total, faults);
}

/// Meets Connection and no more.
struct PlainConnection {
    InMemoryConnection inner;
    Outcome execute(const Command& command, Deadline deadline) { return inner.execute(command, deadline); }
};

TEST_F(FaultyConnectionTest, recalls_only_where_the_wrapped_connection_can) {
    static_assert(kunci::RecallingConnection<FaultyConnection<InMemoryConnection>>);
    static_assert(kunci::Connection<FaultyConnection<PlainConnection>>);
    static_assert(!kunci::RecallingConnection<FaultyConnection<PlainConnection>>);
    FaultyConnection connection{PlainConnection{server_.connect()}, plan_};
    plan_.drop_reply();
    expect_unknown(connection.execute(command({"SET", "k", "v"}), clock_.now() + timeout));
    EXPECT_EQ(stored(), "v");
}

}  // namespace
