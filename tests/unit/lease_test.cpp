#include <kunci/protocol/lease.hpp>

#include "support/lease_script.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>

namespace {

using namespace std::chrono_literals;
using kunci::Duration;
using kunci::Errc;
using kunci::TimePoint;
using kunci::protocol::Lease;
using kunci::protocol::LeaseTerms;
using kunci::protocol::Verb;
using kunci::test::LeaseScript;
using kunci::test::line_of;
using Phase = Lease::Phase;
using Try = Lease::Try;
using Release = Lease::Release;

constexpr LeaseTerms ten_seconds{.ttl = 10s};
constexpr Duration validity = 10s - 100ms - 2ms;

// ---- acquiring ----

TEST(Lease, is_acquired_by_one_plain_set) {
    LeaseScript s{ten_seconds};
    s.lease.begin(s.now + 1s, true);
    const auto request = s.request();
    EXPECT_EQ(line_of(request.command), "SET lock:k token NX EX 10");
    EXPECT_TRUE(s.idle());
    s.answer(request, LeaseScript::ok());
    EXPECT_EQ(s.lease.phase(), Phase::held);
    EXPECT_EQ(s.lease.try_state(), Try::granted);
}

TEST(Lease, says_milliseconds_where_the_ttl_is_not_whole_seconds) {
    LeaseScript s{{.ttl = 1500ms}};
    s.lease.begin(s.now + 1s, true);
    EXPECT_EQ(line_of(s.request().command), "SET lock:k token NX PX 1500");
}

TEST(Lease, is_valid_from_before_the_request_was_sent_not_from_the_reply) {
    LeaseScript s{ten_seconds};
    const TimePoint sent = s.now;
    s.acquire(700ms);
    EXPECT_EQ(s.lease.valid_until(), sent + validity);
}

TEST(Lease, is_not_held_when_the_answer_comes_after_the_lease_would_have_ended) {
    LeaseScript s{ten_seconds};
    s.acquire(validity);
    EXPECT_NE(s.lease.phase(), Phase::held);
    EXPECT_EQ(s.lease.try_state(), Try::failed);
    EXPECT_EQ(s.lease.verdict().code, Errc::lease_lost);
    EXPECT_TRUE(s.lease.may_have_left_a_key());
}

TEST(Lease, that_was_refused_leaves_nothing_to_clean_up) {
    LeaseScript s{ten_seconds};
    s.lease.begin(s.now + 1s, true);
    s.answer(s.request(), LeaseScript::taken());
    EXPECT_EQ(s.lease.try_state(), Try::refused);
    EXPECT_FALSE(s.lease.may_have_left_a_key());
}

TEST(Lease, asks_again_by_the_script_that_knows_its_own_token) {
    LeaseScript s{ten_seconds};
    s.lease.begin(s.now + 1s, false);
    s.answer(s.request(), LeaseScript::taken());
    s.lease.begin(s.now + 1s, false);
    const auto request = s.request();
    EXPECT_EQ(line_of(request.command),
              "EVALSHA " + std::string{kunci::scripts::claim.sha1} + " 1 lock:k token 10000");
    s.answer(request, LeaseScript::claim_refused(1234));
    EXPECT_EQ(s.lease.try_state(), Try::refused);
    EXPECT_EQ(s.lease.verdict().holder_ttl, 1234ms);
}

TEST(Lease, is_not_locked_out_by_its_own_lost_reply) {
    LeaseScript s{ten_seconds};
    s.lease.begin(s.now + 1s, true);
    const auto first = s.request();
    s.now += 100ms;
    EXPECT_EQ(s.answer(first, LeaseScript::maybe_executed()), nullptr);
    EXPECT_EQ(s.lease.try_state(), Try::pending);
    const auto second = s.request();
    EXPECT_EQ(second.verb, Verb::claim);
    const TimePoint sent = s.now;
    s.now += 50ms;
    s.answer(second, LeaseScript::claimed());
    EXPECT_EQ(s.lease.phase(), Phase::held);
    EXPECT_EQ(s.lease.valid_until(), sent + validity);
}

TEST(Lease, repeats_an_unknown_outcome_only_once_and_never_after_the_deadline) {
    LeaseScript s{ten_seconds};
    s.lease.begin(s.now + 1s, true);
    s.answer(s.request(), LeaseScript::maybe_executed());
    s.answer(s.request(), LeaseScript::maybe_executed());
    EXPECT_EQ(s.lease.try_state(), Try::failed);
    EXPECT_TRUE(s.lease.may_have_left_a_key());

    LeaseScript late{ten_seconds};
    late.lease.begin(late.now + 1s, true);
    const auto request = late.request();
    late.now += 1s;
    late.answer(request, LeaseScript::maybe_executed());
    EXPECT_EQ(late.lease.try_state(), Try::failed);
    EXPECT_TRUE(late.idle());
}

TEST(Lease, that_was_certainly_not_asked_for_leaves_nothing_to_clean_up) {
    LeaseScript s{ten_seconds};
    s.lease.begin(s.now + 1s, true);
    s.answer(s.request(), LeaseScript::unreachable());
    EXPECT_EQ(s.lease.try_state(), Try::failed);
    EXPECT_EQ(s.lease.verdict().code, Errc::unreachable);
    EXPECT_FALSE(s.lease.may_have_left_a_key());
}

TEST(Lease, keeps_the_doubt_of_an_earlier_attempt) {
    LeaseScript s{ten_seconds};
    s.lease.begin(s.now + 1s, false);
    s.answer(s.request(), LeaseScript::maybe_executed());
    s.answer(s.request(), LeaseScript::claim_refused(500));
    EXPECT_EQ(s.lease.try_state(), Try::refused);
    // The SET without an answer may still be on its way to the server.
    EXPECT_TRUE(s.lease.may_have_left_a_key());
}

TEST(Lease, bounds_each_command_by_the_operation_timeout_and_the_try) {
    LeaseScript s{{.ttl = 10s, .operation_timeout = 500ms}};
    s.lease.begin(s.now + 1s, false);
    EXPECT_EQ(s.request().deadline, s.now + 500ms);
    LeaseScript t{{.ttl = 10s, .operation_timeout = 500ms}};
    t.lease.begin(t.now + 200ms, true);
    EXPECT_EQ(t.request().deadline, t.now + 200ms);
}

TEST(Lease, wants_to_be_recalled_only_when_nothing_follows) {
    LeaseScript s{ten_seconds};
    s.lease.begin(s.now + 1s, false);
    EXPECT_FALSE(s.request().recall);
    LeaseScript t{ten_seconds};
    t.lease.begin(t.now + 1s, true);
    EXPECT_TRUE(t.request().recall);
}

TEST(Lease, sends_the_text_of_a_script_that_the_server_has_forgotten) {
    LeaseScript s{ten_seconds};
    s.acquire();
    s.lease.release(s.now, s.now + 1s, false);
    const auto by_digest = s.request();
    EXPECT_EQ(by_digest.command.name(), "EVALSHA");
    EXPECT_EQ(s.answer(by_digest, LeaseScript::no_script()), nullptr);
    const auto by_text = s.request();
    EXPECT_EQ(by_text.command.name(), "EVAL");
    EXPECT_EQ(by_text.command[1], kunci::scripts::release.text);
    s.answer(by_text, LeaseScript::integer(1));
    EXPECT_EQ(s.lease.release_state(), Release::released);
}

TEST(Lease, does_not_go_round_in_circles_when_the_text_is_not_known_either) {
    LeaseScript s{ten_seconds};
    s.acquire();
    s.lease.release(s.now, s.now + 1s, false);
    s.answer(s.request(), LeaseScript::no_script());
    s.answer(s.request(), LeaseScript::no_script());
    EXPECT_TRUE(s.idle());
    EXPECT_EQ(s.lease.release_state(), Release::unknown);
}

TEST(Lease, counts_a_claim_by_text_from_its_own_send) {
    LeaseScript s{ten_seconds};
    s.lease.begin(s.now + 1s, false);
    s.answer(s.request(), LeaseScript::taken());
    s.lease.begin(s.now + 5s, false);
    const auto by_digest = s.request();
    s.now += 300ms;
    s.answer(by_digest, LeaseScript::no_script());
    const TimePoint sent = s.now;
    s.answer(s.request(), LeaseScript::claimed());
    EXPECT_EQ(s.lease.valid_until(), sent + validity);
}

// ---- holding ----

TEST(Lease, is_lost_at_valid_until_to_the_nanosecond) {
    LeaseScript s{ten_seconds};
    s.acquire();
    s.now = s.lease.valid_until() - 1ns;
    s.lease.on_time(s.now);
    EXPECT_EQ(s.lease.phase(), Phase::held);
    s.now += 1ns;
    s.lease.on_time(s.now);
    EXPECT_EQ(s.lease.phase(), Phase::lost);
}

TEST(Lease, is_refreshed_after_a_third_of_the_ttl) {
    LeaseScript s{ten_seconds};
    const TimePoint sent = s.now;
    s.acquire();
    EXPECT_TRUE(s.idle());
    const TimePoint due = s.lease.wake_at();
    EXPECT_LE(due, sent + Duration{10s} / 3);
    EXPECT_GE(due, sent + Duration{10s} / 3 - Duration{1s} / 3);
    s.now = due;
    const auto request = s.request();
    EXPECT_EQ(line_of(request.command),
              "EVALSHA " + std::string{kunci::scripts::refresh.sha1} + " 1 lock:k token 10000");
    s.now += 20ms;
    EXPECT_EQ(s.answer(request, LeaseScript::integer(6667))->answer, kunci::protocol::Verdict::Answer::yes);
    EXPECT_EQ(s.lease.valid_until(), due + validity);
    EXPECT_LE(s.lease.wake_at(), due + Duration{10s} / 3);
}

TEST(Lease, spreads_refreshes_of_different_tenures) {
    LeaseScript a{ten_seconds};
    Lease b{kunci::LockKey{"lock:", "k"}, "token", ten_seconds, 43};
    a.acquire();
    b.begin(TimePoint::max(), false);
    const auto request = b.next_request(TimePoint{1h});
    b.on_outcome(0, request->id, LeaseScript::ok(), TimePoint{1h});
    EXPECT_NE(a.lease.wake_at(), b.wake_at());
}

TEST(Lease, keeps_what_it_was_sure_of_when_a_refresh_has_no_answer) {
    LeaseScript s{ten_seconds};
    s.acquire();
    const TimePoint before = s.lease.valid_until();
    s.now = s.lease.wake_at();
    const auto request = s.request();
    s.now = request.deadline;
    s.answer(request, LeaseScript::maybe_executed());
    EXPECT_EQ(s.lease.phase(), Phase::held);
    EXPECT_EQ(s.lease.valid_until(), before);
}

TEST(Lease, tries_at_least_four_refreshes_before_it_is_lost) {
    for (const Duration ttl : {Duration{300ms}, Duration{3s}, Duration{30s}}) {
        LeaseScript s{{.ttl = ttl, .operation_timeout = 1min}};
        s.acquire();
        int attempts = 0;
        while (s.lease.phase() == Phase::held) {
            s.now = s.lease.wake_at();
            if (const auto request = s.lease.next_request(s.now)) {
                ++attempts;
                s.now = request->deadline;  // every attempt hangs as long as it may
                s.answer(*request, LeaseScript::maybe_executed());
            }
        }
        EXPECT_GE(attempts, 4) << ttl.count();
    }
}

TEST(Lease, does_not_hammer_a_server_that_refuses_connections) {
    LeaseScript s{{.ttl = 3s}};
    s.acquire();
    int attempts = 0;
    while (s.lease.phase() == Phase::held) {
        s.now = s.lease.wake_at();
        if (const auto request = s.lease.next_request(s.now)) {
            ++attempts;
            s.answer(*request, LeaseScript::unreachable());
        }
    }
    EXPECT_GE(attempts, 4);
    EXPECT_LE(attempts, 15);
}

TEST(Lease, survives_a_passing_trouble) {
    LeaseScript s{{.ttl = 3s}};
    s.acquire();
    const TimePoint start = s.now;
    while (s.now < start + 10s) {
        s.now = s.lease.wake_at();
        ASSERT_EQ(s.lease.phase(), Phase::held);
        const auto request = s.lease.next_request(s.now);
        const bool trouble = s.now > start + 900ms && s.now < start + 1600ms;
        if (request) s.answer(*request, trouble ? LeaseScript::unreachable() : LeaseScript::integer(1000));
    }
    s.lease.on_time(s.now);
    EXPECT_EQ(s.lease.phase(), Phase::held);
}

TEST(Lease, is_lost_at_once_when_the_server_says_so) {
    LeaseScript s{ten_seconds};
    s.acquire();
    s.now = s.lease.wake_at();
    s.answer(s.request(), LeaseScript::integer(-2));
    EXPECT_EQ(s.lease.phase(), Phase::lost);
    EXPECT_TRUE(s.idle());
    EXPECT_EQ(s.lease.valid_until(), TimePoint::min());
}

TEST(Lease, is_not_revived_by_a_reply_that_comes_after_its_end) {
    LeaseScript s{ten_seconds};
    s.acquire();
    s.now = s.lease.wake_at();
    const auto request = s.request();
    s.now = s.lease.valid_until();
    s.answer(request, LeaseScript::integer(5000));
    EXPECT_EQ(s.lease.phase(), Phase::lost);
    EXPECT_LE(s.lease.valid_until(), s.now);
}

TEST(Lease, is_not_asked_for_again_when_it_has_ended_while_the_server_wanted_the_script) {
    LeaseScript s{ten_seconds};
    s.acquire();
    s.now = s.lease.wake_at();
    const auto request = s.request();
    s.now = s.lease.valid_until();
    s.answer(request, LeaseScript::no_script());
    EXPECT_EQ(s.lease.phase(), Phase::lost);
    EXPECT_TRUE(s.idle());
}

TEST(Lease, does_not_hammer_a_server_that_never_knows_the_script) {
    LeaseScript s{{.ttl = 3s}};
    s.acquire();
    int attempts = 0;
    while (s.lease.phase() == Phase::held) {
        s.now = s.lease.wake_at();
        while (const auto request = s.lease.next_request(s.now)) {
            ASSERT_LT(++attempts, 50);
            s.answer(*request, LeaseScript::no_script());
        }
    }
}

TEST(Lease, is_refreshed_in_time_where_the_clocks_may_drift_far) {
    for (const LeaseTerms terms : {LeaseTerms{.ttl = 30s, .drift_factor = 0.7}, LeaseTerms{.ttl = 3ms}}) {
        LeaseScript s{terms};
        s.acquire();
        EXPECT_LT(s.lease.wake_at(), s.lease.valid_until());
    }
}

TEST(Lease, ignores_an_answer_to_something_it_no_longer_waits_for) {
    LeaseScript s{ten_seconds};
    s.acquire();
    s.now = s.lease.wake_at();
    const auto request = s.request();
    s.answer(request, LeaseScript::integer(5000));
    const TimePoint valid = s.lease.valid_until();
    EXPECT_EQ(s.answer(request, LeaseScript::integer(-2)), nullptr);
    EXPECT_EQ(s.lease.phase(), Phase::held);
    EXPECT_EQ(s.lease.valid_until(), valid);
}

TEST(Lease, gives_a_refresh_a_sixth_of_the_ttl_and_no_more_than_is_left) {
    LeaseScript s{{.ttl = 3s, .operation_timeout = 1min}};
    s.acquire();
    s.now = s.lease.wake_at();
    EXPECT_EQ(s.request().deadline, s.now + 500ms);

    LeaseScript t{{.ttl = 3s, .operation_timeout = 1min}};
    t.acquire();
    t.now = t.lease.valid_until() - 10ms;
    EXPECT_EQ(t.request().deadline, t.lease.valid_until());
}

TEST(Lease, is_never_refreshed_when_that_is_switched_off) {
    LeaseScript s{{.ttl = 10s, .auto_refresh = false}};
    s.acquire();
    EXPECT_EQ(s.lease.wake_at(), s.lease.valid_until());
    s.now = s.lease.valid_until() - 1ns;
    EXPECT_TRUE(s.idle());
}

TEST(Lease, is_not_refreshed_beyond_the_longest_hold) {
    LeaseScript s{{.ttl = 3s, .max_hold = 5s}};
    const TimePoint acquired = s.now;
    s.acquire();
    while (s.lease.phase() == Phase::held) {
        s.now = s.lease.wake_at();
        if (const auto request = s.lease.next_request(s.now)) {
            EXPECT_LT(s.now, acquired + 5s);
            s.answer(*request, LeaseScript::integer(1000));
        }
    }
    EXPECT_GT(s.now, acquired + 5s);
    EXPECT_LE(s.now, acquired + 5s + 3s);
}

// ---- releasing ----

TEST(Lease, ends_before_the_first_byte_of_its_release) {
    LeaseScript s{ten_seconds};
    s.acquire();
    s.lease.release(s.now, s.now + 1s, false);
    EXPECT_EQ(s.lease.valid_until(), TimePoint::min());
    EXPECT_NE(s.lease.phase(), Phase::held);
    const auto request = s.request();
    EXPECT_EQ(line_of(request.command),
              "EVALSHA " + std::string{kunci::scripts::release.sha1} + " 1 lock:k token");
    s.answer(request, LeaseScript::integer(1));
    EXPECT_EQ(s.lease.phase(), Phase::over);
    EXPECT_EQ(s.lease.release_state(), Release::released);
    EXPECT_TRUE(s.idle());
}

TEST(Lease, says_when_it_had_ended_before_the_release) {
    LeaseScript s{ten_seconds};
    s.acquire();
    s.lease.release(s.now, s.now + 1s, false);
    s.answer(s.request(), LeaseScript::integer(0));
    EXPECT_EQ(s.lease.release_state(), Release::not_ours);
}

TEST(Lease, knows_that_its_own_lost_release_did_it) {
    LeaseScript s{ten_seconds};
    s.acquire();
    s.lease.release(s.now, s.now + 1s, false);
    s.answer(s.request(), LeaseScript::maybe_executed());
    s.answer(s.request(), LeaseScript::integer(0));
    EXPECT_EQ(s.lease.release_state(), Release::released);
}

TEST(Lease, claims_no_release_that_expiry_may_have_done_nor_denies_it) {
    LeaseScript s{ten_seconds};
    s.acquire();
    s.now = s.lease.valid_until() - 1ms;
    s.lease.release(s.now, s.now + 1s, false);
    s.answer(s.request(), LeaseScript::maybe_executed());
    s.now += 2ms;
    s.answer(s.request(), LeaseScript::integer(0));
    EXPECT_EQ(s.lease.release_state(), Release::unknown);
    EXPECT_EQ(s.lease.verdict().code, Errc::maybe_executed);
    // That it is not ours now is certain, and whoever asks again is told so.
    s.lease.release(s.now, s.now + 1s, false);
    s.answer(s.request(), LeaseScript::integer(0));
    EXPECT_EQ(s.lease.release_state(), Release::not_ours);
}

TEST(Lease, that_was_over_before_its_release_is_not_ours_whatever_became_of_the_first_attempt) {
    LeaseScript s{ten_seconds};
    s.acquire();
    s.now = s.lease.valid_until();
    s.lease.on_time(s.now);
    s.lease.release(s.now, s.now + 1s, false);
    s.answer(s.request(), LeaseScript::maybe_executed());
    s.answer(s.request(), LeaseScript::integer(0));
    EXPECT_EQ(s.lease.release_state(), Release::not_ours);
}

TEST(Lease, of_a_known_token_knows_its_lost_release_by_the_tokens_validity) {
    for (const bool known : {true, false}) {
        LeaseScript s{ten_seconds};
        s.lease.release_known(s.now, s.now + 1s, known ? std::optional{s.now + 5s} : std::nullopt, false);
        s.answer(s.request(), LeaseScript::maybe_executed());
        s.answer(s.request(), LeaseScript::integer(0));
        EXPECT_EQ(s.lease.release_state(), known ? Release::released : Release::unknown);
    }
    LeaseScript again{ten_seconds};
    again.lease.release_known(again.now, again.now + 1s, again.now + 5s, true);
    again.answer(again.request(), LeaseScript::integer(0));
    EXPECT_EQ(again.lease.release_state(), Release::released);
}

TEST(Lease, does_not_say_that_nothing_was_executed_when_an_earlier_attempt_may_have_been) {
    LeaseScript released{ten_seconds};
    released.acquire();
    released.lease.release(released.now, released.now + 1s, false);
    released.answer(released.request(), LeaseScript::maybe_executed());
    released.answer(released.request(), LeaseScript::unreachable());
    EXPECT_EQ(released.lease.verdict().code, Errc::maybe_executed);

    LeaseScript resumed{{.ttl = 10s, .auto_refresh = false}};
    resumed.lease.resume(resumed.now + 1s, std::nullopt);
    resumed.answer(resumed.request(), LeaseScript::maybe_executed());
    resumed.answer(resumed.request(), LeaseScript::unreachable());
    EXPECT_EQ(resumed.lease.try_state(), Try::failed);
    EXPECT_EQ(resumed.lease.verdict().code, Errc::maybe_executed);
}

TEST(Lease, can_be_released_though_nobody_will_bring_the_outcome_under_way) {
    LeaseScript s{ten_seconds};
    s.acquire();
    s.now = s.lease.wake_at();
    const auto refresh = s.request();
    s.lease.forget_requests();
    s.lease.release(s.now, s.now + 1s, false);
    EXPECT_EQ(s.request().verb, Verb::release);
    EXPECT_EQ(s.answer(refresh, LeaseScript::integer(5000)), nullptr);
}

TEST(Lease, can_be_released_again_after_a_release_without_answer) {
    LeaseScript s{ten_seconds};
    s.acquire();
    s.lease.release(s.now, s.now + 1s, false);
    s.answer(s.request(), LeaseScript::maybe_executed());
    s.answer(s.request(), LeaseScript::unreachable());
    EXPECT_EQ(s.lease.release_state(), Release::unknown);
    s.lease.release(s.now, s.now + 1s, false);
    s.answer(s.request(), LeaseScript::integer(0));
    EXPECT_EQ(s.lease.release_state(), Release::released);
}

TEST(Lease, waits_for_the_refresh_under_way_before_it_sends_the_release) {
    LeaseScript s{ten_seconds};
    s.acquire();
    s.now = s.lease.wake_at();
    const auto refresh = s.request();
    s.lease.release(s.now, s.now + 1s, false);
    EXPECT_TRUE(s.idle());
    s.answer(refresh, LeaseScript::integer(5000));
    EXPECT_EQ(s.lease.valid_until(), TimePoint::min());
    EXPECT_EQ(s.request().verb, Verb::release);
}

TEST(Lease, releases_a_grant_that_comes_after_it_was_given_up) {
    LeaseScript s{ten_seconds};
    s.lease.begin(s.now + 1s, true);
    const auto acquire = s.request();
    s.lease.release(s.now, s.now + 10s, true);
    s.answer(acquire, LeaseScript::ok());
    EXPECT_EQ(s.lease.valid_until(), TimePoint::min());
    EXPECT_NE(s.lease.phase(), Phase::held);
    EXPECT_EQ(s.request().verb, Verb::release);
}

TEST(Lease, leaves_an_unreachable_server_alone_unless_it_is_told_to_persist) {
    LeaseScript s{ten_seconds};
    s.acquire();
    s.lease.release(s.now, s.now + 10s, false);
    s.answer(s.request(), LeaseScript::unreachable());
    EXPECT_EQ(s.lease.release_state(), Release::unknown);
    EXPECT_EQ(s.lease.verdict().code, Errc::unreachable);
}

TEST(Lease, persists_until_the_deadline_with_growing_pauses) {
    LeaseScript s{ten_seconds};
    s.acquire();
    const TimePoint end = s.now + 10s;
    s.lease.release(s.now, end, true);
    int attempts = 0;
    while (s.lease.phase() != Phase::over) {
        ASSERT_LT(s.now, end);
        if (const auto request = s.lease.next_request(s.now)) {
            ++attempts;
            s.answer(*request, LeaseScript::unreachable());
        } else {
            s.now = s.lease.wake_at();
        }
    }
    EXPECT_GE(attempts, 10);
    EXPECT_LE(attempts, 20);
    EXPECT_EQ(s.lease.release_state(), Release::unknown);
}

TEST(Lease, asks_again_after_the_release_when_a_late_set_may_follow) {
    LeaseScript s{ten_seconds};
    s.lease.begin(s.now + 1s, true);
    const auto acquire = s.request();
    s.now += 1s;
    s.answer(acquire, LeaseScript::maybe_executed());
    s.lease.release(s.now, s.now + 10s, true);
    int releases = 0;
    while (s.lease.phase() != Phase::over) {
        if (const auto request = s.lease.next_request(s.now)) {
            ++releases;
            s.answer(*request, LeaseScript::integer(0));
        } else {
            s.now = s.lease.wake_at();
        }
    }
    EXPECT_EQ(releases, 4);
}

TEST(Lease, of_a_known_token_is_released_without_having_been_acquired_here) {
    LeaseScript s{ten_seconds};
    s.lease.release_known(s.now, s.now + 1s, std::nullopt, false);
    s.answer(s.request(), LeaseScript::integer(1));
    EXPECT_EQ(s.lease.release_state(), Release::released);
}

// ---- resuming ----

TEST(Lease, is_not_resumed_by_a_reply_that_comes_after_its_end) {
    LeaseScript s{{.ttl = 10s, .auto_refresh = false}};
    s.lease.resume(s.now + 1s, s.now + 300ms);
    const auto request = s.request();
    EXPECT_EQ(request.deadline, s.now + 300ms);
    s.now += 300ms;
    s.answer(request, LeaseScript::integer(5000));
    EXPECT_EQ(s.lease.try_state(), Try::refused);
    EXPECT_EQ(s.lease.phase(), Phase::lost);
    EXPECT_TRUE(s.lease.may_have_been_refreshed());
    EXPECT_TRUE(s.idle());
}

TEST(Lease, that_is_over_is_not_even_asked_for) {
    LeaseScript s{{.ttl = 10s, .auto_refresh = false}};
    s.lease.resume(s.now + 1s, s.now);
    EXPECT_TRUE(s.idle());
    EXPECT_EQ(s.lease.try_state(), Try::refused);
    EXPECT_FALSE(s.lease.may_have_been_refreshed());
}

TEST(Lease, is_resumed_by_a_refresh_and_valid_from_its_send) {
    LeaseScript s{{.ttl = 10s, .auto_refresh = false}};
    s.lease.resume(s.now + 1s, std::nullopt);
    const auto request = s.request();
    EXPECT_EQ(request.verb, Verb::refresh);
    const TimePoint sent = s.now;
    s.now += 10ms;
    s.answer(request, LeaseScript::integer(3));
    EXPECT_EQ(s.lease.try_state(), Try::granted);
    EXPECT_EQ(s.lease.valid_until(), sent + validity);
}

TEST(Lease, that_is_not_ours_is_never_created_by_resuming) {
    LeaseScript s{{.ttl = 10s, .auto_refresh = false}};
    s.lease.resume(s.now + 1s, std::nullopt);
    s.answer(s.request(), LeaseScript::integer(-2));
    EXPECT_EQ(s.lease.try_state(), Try::refused);
    EXPECT_EQ(s.lease.phase(), Phase::lost);
    EXPECT_TRUE(s.idle());
}

}  // namespace
