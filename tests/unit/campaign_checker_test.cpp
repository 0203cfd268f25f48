// The checker of the campaign finds what it is there to find: each rule is broken here by hand.
#include "campaign/checker.hpp"
#include "campaign/server_record.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace kunci::campaign {
namespace {

constexpr std::int64_t ms = 1'000'000;
constexpr std::int64_t loss_delay = 20 * ms;

std::string token(char letter) {
    return std::string(32, letter);
}

/// Two tenures of one lock, one after the other; the first is released, the second runs out.
History sound_history() {
    History history{.ttl = 400 * ms};
    history.tenures = {{.token = token('a'),
                        .entered = 1000 * ms,
                        .last_held = 1100 * ms,
                        .valid_until = 1390 * ms,
                        .release_begun = 1101 * ms,
                        .release_result = ReleaseResult::yes},
                       {.token = token('b'),
                        .entered = 1110 * ms,
                        .last_held = 1490 * ms,
                        .valid_until = 1500 * ms,
                        .lost_at = 1501 * ms,
                        .valid_when_lost = 1500 * ms,
                        .losses = 1,
                        .release_begun = 1600 * ms,
                        .release_result = ReleaseResult::no}};
    history.server.tenures = {{"lock:k", token('a'), 1400, End::deleted},
                              {"lock:k", token('b'), 1510, End::expired}};
    return history;
}

/// The rules that a history breaks.
std::set<std::string> broken(const History& history) {
    std::set<std::string> rules;
    for (const auto& each : check(history, loss_delay)) rules.insert(each.rule);
    return rules;
}
using Rules = std::set<std::string>;

TEST(CampaignChecker, finds_nothing_in_a_sound_history) {
    EXPECT_EQ(broken(sound_history()), Rules{});
    EXPECT_EQ(broken({}), Rules{});
}

TEST(CampaignChecker, finds_two_who_believed_at_one_time) {
    auto history = sound_history();
    history.tenures[1].entered = 1100 * ms;
    EXPECT_EQ(broken(history), Rules{"exclusion"});
    history.tenures[1].lock = 7;  // another lock
    EXPECT_EQ(broken(history), Rules{});
}

TEST(CampaignChecker, finds_an_overlap_with_one_who_believed_for_long_and_not_only_with_the_last) {
    auto history = sound_history();
    history.tenures[0].last_held = 1300 * ms;
    history.tenures[1].entered = 1110 * ms;
    history.tenures[1].last_held = 1120 * ms;
    history.tenures.push_back(history.tenures[1]);
    history.tenures[2].token = token('c');
    history.tenures[2].entered = 1200 * ms;
    history.server.tenures.push_back({"lock:k", token('c'), 1510, End::expired});
    EXPECT_EQ(check(history, loss_delay).size(), 2U);
}

TEST(CampaignChecker, finds_a_lock_that_was_held_beyond_its_validity) {
    auto history = sound_history();
    history.tenures[0].valid_until = 1100 * ms;
    EXPECT_EQ(broken(history), Rules{"loss in time"});
}

TEST(CampaignChecker, finds_a_loss_that_was_told_late_early_twice_or_never) {
    auto late = sound_history();
    late.tenures[1].lost_at = 1521 * ms;
    EXPECT_EQ(broken(late), Rules{"loss in time"});
    late.pauses = {{0, 1510 * ms, 1515 * ms}};  // its process stood still
    EXPECT_EQ(broken(late), Rules{});
    late.pauses[0].process = 1;
    EXPECT_EQ(broken(late), Rules{"loss in time"});

    auto early = sound_history();
    early.tenures[1].lost_at = 1499 * ms;
    EXPECT_EQ(broken(early), Rules{"loss in time"});

    auto twice = sound_history();
    twice.tenures[1].losses = 2;
    EXPECT_EQ(broken(twice), Rules{"loss in time"});

    auto never = sound_history();
    never.tenures[1].lost_at = 0;
    never.tenures[1].losses = 0;
    EXPECT_EQ(broken(never), Rules{"loss in time"});
    never.tenures[1].guarded = false;  // a bare token tells nothing
    EXPECT_EQ(broken(never), Rules{});
}

TEST(CampaignChecker, finds_a_lock_that_was_held_when_the_server_had_dropped_it) {
    auto history = sound_history();
    history.server.tenures[1].last_expiry = 1489;
    EXPECT_EQ(broken(history), Rules{"containment"});
    history.wall_offset = -5 * ms;  // the server's clock is behind
    EXPECT_EQ(broken(history), Rules{});
}

TEST(CampaignChecker, finds_a_release_that_touched_another_token) {
    auto stolen = sound_history();
    stolen.server.tenures[1].end = End::deleted;
    EXPECT_EQ(broken(stolen), Rules{"own token"});
    stolen.replies_lost = true;  // then it may have been its own release
    EXPECT_EQ(broken(stolen), Rules{});

    auto unasked = sound_history();
    unasked.tenures[0].release_begun = 0;
    unasked.tenures[0].release_result = ReleaseResult::none;
    EXPECT_EQ(broken(unasked), Rules{"own token"});
    unasked.killed = {0};  // in the middle of its release
    EXPECT_EQ(broken(unasked), Rules{});

    auto overwritten = sound_history();
    overwritten.server.tenures[1].end = End::overwritten;
    EXPECT_EQ(broken(overwritten), Rules{"own token"});

    auto untrue = sound_history();
    untrue.server.tenures[0].end = End::expired;
    EXPECT_EQ(broken(untrue), Rules{"own token"});

    auto unknown = sound_history();
    unknown.server.tenures.pop_back();
    EXPECT_EQ(broken(unknown), Rules{"own token"});
}

TEST(CampaignChecker, finds_a_token_that_was_used_twice) {
    auto history = sound_history();
    history.server.tenures.push_back(history.server.tenures[0]);
    EXPECT_EQ(broken(history), Rules{"own token"});
}

TEST(CampaignChecker, finds_a_lock_that_was_kept_alive_after_its_end) {
    auto history = sound_history();
    history.server.tenures[0].last_expiry = 1502;
    EXPECT_EQ(broken(history), Rules{"ttl"});
    history.longest_stall = 10 * ms;
    EXPECT_EQ(broken(history), Rules{});
}

TEST(CampaignChecker, finds_who_got_no_turn_and_what_was_left) {
    auto history = sound_history();
    history.without_turn = {"process 1, thread 2, lock 0"};
    history.keys_left = {"lock:k"};
    EXPECT_EQ(broken(history), (Rules{"liveness", "nothing left"}));
}

// ---- the server's record ----

ServerRecord record_of(const std::vector<std::vector<std::string>>& writes) {
    RecordReader reader;
    for (const auto& each : writes) reader.apply(each);
    return reader.take();
}

TEST(ServerRecordReader, puts_tenures_together) {
    const auto record = record_of({{"SELECT", "0"},
                                   {"SET", "lock:k", "a", "PXAT", "1000"},
                                   {"PEXPIREAT", "lock:k", "1500"},
                                   {"DEL", "lock:k"},
                                   {"SET", "lock:k", "b", "PXAT", "2000"},
                                   {"UNLINK", "lock:k"},
                                   {"SET", "lock:k", "c", "PXAT", "3000"}});
    ASSERT_EQ(record.tenures.size(), 3U);
    EXPECT_TRUE(record.oddities.empty());
    EXPECT_EQ(record.tenures[0].last_expiry, 1500);
    EXPECT_EQ(record.tenures[0].end, End::deleted);
    EXPECT_EQ(record.tenures[1].end, End::expired);
    EXPECT_EQ(record.tenures[2].end, End::not_yet);
}

TEST(ServerRecordReader, finds_what_no_lock_writes) {
    EXPECT_EQ(record_of({{"SET", "lock:k", "a"}}).oddities.size(), 1U) << "without expiry";
    EXPECT_EQ(record_of({{"PEXPIREAT", "lock:k", "1"}}).oddities.size(), 1U) << "revived";
    EXPECT_EQ(record_of({{"DEL", "lock:k"}}).oddities.size(), 1U);
    EXPECT_EQ(record_of({{"PERSIST", "lock:k"}}).oddities.size(), 1U);
    const auto shortened =
        record_of({{"SET", "lock:k", "a", "PXAT", "1000"}, {"PEXPIREAT", "lock:k", "900"}});
    EXPECT_EQ(shortened.oddities.size(), 1U);
    const auto overwritten =
        record_of({{"SET", "lock:k", "a", "PXAT", "1000"}, {"SET", "lock:k", "b", "PXAT", "1000"}});
    EXPECT_EQ(overwritten.tenures[0].end, End::overwritten);
}

}  // namespace
}  // namespace kunci::campaign
