#include <kunci/protocol/validity.hpp>
#include <kunci/protocol/verdict.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace {

using namespace std::chrono_literals;
using kunci::Errc;
using kunci::Fault;
using kunci::Reply;
using kunci::protocol::Verb;
using kunci::protocol::Verdict;
using Answer = Verdict::Answer;

Verdict interpret(Verb verb, const kunci::Outcome& outcome) {
    return kunci::protocol::interpret(verb, outcome, "the-secret");
}

Reply pair(std::int64_t first, std::int64_t second) {
    return Reply::array({Reply::integer(first), Reply::integer(second)});
}

TEST(Validity, is_the_ttl_less_drift_less_two_milliseconds) {
    EXPECT_EQ(kunci::protocol::validity(10s, 0.01), 10s - 100ms - 2ms);
    EXPECT_EQ(kunci::protocol::validity(1s, 0.0), 998ms);
    EXPECT_EQ(kunci::protocol::validity(1ns, 0.01), 1ns - 1ns - 2ms);  // drift rounds up
    EXPECT_LE(kunci::protocol::validity(2ms, 0.01), 0ms);
    EXPECT_GT(kunci::protocol::validity(3ms, 0.01), 0ms);
}

TEST(Quorum, is_more_than_half_of_all_that_are_configured) {
    EXPECT_EQ(kunci::protocol::quorum_of(1), 1U);
    EXPECT_EQ(kunci::protocol::quorum_of(3), 2U);
    EXPECT_EQ(kunci::protocol::quorum_of(4), 3U);
    EXPECT_EQ(kunci::protocol::quorum_of(5), 3U);
}

TEST(Verdict, reads_the_plain_set) {
    EXPECT_EQ(interpret(Verb::set, Reply::status("OK")).answer, Answer::yes);
    EXPECT_EQ(interpret(Verb::set, Reply::nil()).answer, Answer::no);
    EXPECT_EQ(interpret(Verb::set, Reply::integer(1)).answer, Answer::unknown);
}

TEST(Verdict, reads_the_claim_with_the_holders_remaining_time) {
    EXPECT_EQ(interpret(Verb::claim, pair(1, -2)).answer, Answer::yes);
    const auto refused = interpret(Verb::claim, pair(0, 1234));
    EXPECT_EQ(refused.answer, Answer::no);
    EXPECT_EQ(refused.holder_ttl, 1234ms);
}

TEST(Verdict, does_not_invent_a_time_for_a_holder_without_expiry) {
    EXPECT_EQ(interpret(Verb::claim, pair(0, -1)).holder_ttl, std::nullopt);
}

TEST(Verdict, survives_a_holder_with_an_absurd_expiry) {
    const auto most = std::numeric_limits<std::int64_t>::max();
    EXPECT_GT(interpret(Verb::claim, pair(0, most)).holder_ttl, 1000h);
}

TEST(Verdict, reads_refresh_and_release) {
    EXPECT_EQ(interpret(Verb::refresh, Reply::integer(5000)).answer, Answer::yes);
    EXPECT_EQ(interpret(Verb::refresh, Reply::integer(-1)).answer, Answer::yes);  // had lost its expiry
    EXPECT_EQ(interpret(Verb::refresh, Reply::integer(-2)).answer, Answer::no);
    EXPECT_EQ(interpret(Verb::release, Reply::integer(1)).answer, Answer::yes);
    EXPECT_EQ(interpret(Verb::release, Reply::integer(0)).answer, Answer::no);
}

TEST(Verdict, never_takes_a_strange_reply_for_an_answer) {
    const std::vector<Reply> strange{Reply::nil(), Reply::status("QUEUED"), Reply::string("OK"),
                                     Reply::array({}), pair(7, 7)};
    for (const auto verb : {Verb::refresh, Verb::release}) {
        for (const auto& reply : strange) EXPECT_EQ(interpret(verb, reply).answer, Answer::unknown);
    }
    EXPECT_EQ(interpret(Verb::claim, Reply::array({})).answer, Answer::unknown);
    EXPECT_EQ(interpret(Verb::claim, Reply::integer(1)).answer, Answer::unknown);
    EXPECT_EQ(interpret(Verb::set, Reply::string("OK")).answer, Answer::unknown);
}

struct ErrorCase {
    std::string text;
    Answer answer;
    Errc code;
    bool permanent;
};

class ServerErrors : public testing::TestWithParam<ErrorCase> {};

TEST_P(ServerErrors, are_told_apart) {
    const auto& expected = GetParam();
    const auto verdict = interpret(Verb::refresh, Reply::error(expected.text));
    EXPECT_EQ(verdict.answer, expected.answer);
    EXPECT_EQ(verdict.code, expected.code);
    EXPECT_EQ(verdict.permanent, expected.permanent);
    EXPECT_EQ(verdict.detail, expected.text);
}

INSTANTIATE_TEST_SUITE_P(
    Verdict, ServerErrors,
    testing::Values(
        ErrorCase{"LOADING Redis is loading the dataset in memory", Answer::failed, Errc::loading, false},
        ErrorCase{"BUSY Redis is busy running a script.", Answer::failed, Errc::script_running, false},
        ErrorCase{"READONLY You can't write against a read only replica.", Answer::failed, Errc::read_only,
                  false},
        ErrorCase{"OOM command not allowed when used memory > 'maxmemory'.", Answer::failed,
                  Errc::out_of_memory, false},
        ErrorCase{"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
                  Answer::failed, Errc::master_down, false},
        ErrorCase{"NOREPLICAS Not enough good replicas to write.", Answer::failed, Errc::too_few_replicas,
                  false},
        ErrorCase{"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist "
                  "to disk.",
                  Answer::failed, Errc::disk_failing, false},
        ErrorCase{"CLUSTERDOWN Hash slot not served", Answer::failed, Errc::cluster_down, false},
        ErrorCase{"TRYAGAIN Multiple keys request during rehashing of slot", Answer::failed,
                  Errc::cluster_down, false},
        ErrorCase{"WRONGPASS invalid username-password pair", Answer::failed, Errc::wrong_password, true},
        ErrorCase{"ASK 3999 127.0.0.1:6381", Answer::failed, Errc::wrong_node, true},
        ErrorCase{"NOAUTH Authentication required.", Answer::failed, Errc::password_required, true},
        ErrorCase{"NOPERM this user has no permissions", Answer::failed, Errc::acl_denied, true},
        ErrorCase{"ERR The user executing the script can't run this command or subcommand script: 7c05",
                  Answer::failed, Errc::acl_denied, true},
        ErrorCase{"MOVED 3999 127.0.0.1:6381", Answer::failed, Errc::wrong_node, true},
        ErrorCase{"CROSSSLOT Keys in request don't hash to the same slot", Answer::failed, Errc::cross_slot,
                  true},
        ErrorCase{"ERR something nobody has seen before", Answer::unknown, Errc::server_refused, true},
        // Redis 6 hides the error of a command inside of a script.
        ErrorCase{"ERR Error running script (call to f_ab12): @user_script:6: @user_script: 6: -READONLY You "
                  "can't write against a read only replica.",
                  Answer::failed, Errc::read_only, false},
        ErrorCase{"ERR Error running script (call to f_ab12): @user_script:4: @user_script: 4: something",
                  Answer::unknown, Errc::server_refused, true}));

TEST(Verdict, asks_for_the_text_of_a_script_the_server_has_forgotten) {
    const auto error = Reply::error("NOSCRIPT No matching script. Please use EVAL.");
    EXPECT_EQ(interpret(Verb::release, error).answer, Answer::no_script);
}

TEST(Verdict, takes_another_type_under_our_name_for_somebody_elses_key) {
    const std::string text = "WRONGTYPE Operation against a key holding the wrong kind of value";
    for (const auto verb : {Verb::claim, Verb::refresh, Verb::release}) {
        EXPECT_EQ(interpret(verb, Reply::error(text)).answer, Answer::no);
        EXPECT_EQ(interpret(verb, Reply::error("ERR Error running script (call to f_1): " + text)).answer,
                  Answer::no);
    }
}

TEST(Verdict, keeps_not_sent_and_maybe_executed_apart) {
    const auto not_sent = interpret(Verb::set, Fault::not_sent(Errc::unreachable, "Connection refused"));
    EXPECT_EQ(not_sent.answer, Answer::failed);
    EXPECT_FALSE(not_sent.permanent);
    EXPECT_EQ(not_sent.detail, "Connection refused");
    const auto maybe = interpret(Verb::set, Fault::maybe_executed("timed out"));
    EXPECT_EQ(maybe.answer, Answer::unknown);
    EXPECT_EQ(maybe.code, Errc::maybe_executed);
    EXPECT_FALSE(maybe.permanent);
}

TEST(Verdict, knows_that_a_wrong_password_does_not_mend_itself) {
    const auto verdict =
        interpret(Verb::set, Fault::not_sent(Errc::not_permitted, "WRONGPASS invalid", "WRONGPASS"));
    EXPECT_EQ(verdict.answer, Answer::failed);
    EXPECT_TRUE(verdict.permanent);
    EXPECT_EQ(verdict.code_word, "WRONGPASS");
}

TEST(Verdict, never_quotes_the_secret) {
    // What redis-server 7 says where EVALSHA was renamed away.
    const auto told =
        interpret(Verb::release, Reply::error("ERR unknown command 'EVALSHA', with args beginning with: "
                                              "'819c' '1' 'lock:x' 'the-secret' "));
    EXPECT_EQ(told.detail, "ERR unknown command 'EVALSHA'");
    const auto repeated = interpret(Verb::set, Reply::error("ERR the-secret and the-secret"));
    EXPECT_EQ(repeated.detail, "ERR <token> and <token>");
}

}  // namespace
