#include <kunci/protocol/acquisition.hpp>

#include "support/lease_script.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

namespace {

using namespace std::chrono_literals;
using kunci::Duration;
using kunci::Errc;
using kunci::Outcome;
using kunci::TimePoint;
using kunci::protocol::Acquisition;
using kunci::protocol::Lease;
using kunci::protocol::LeaseTerms;
using kunci::protocol::Patience;
using kunci::protocol::Request;
using kunci::protocol::Verb;
using kunci::test::LeaseScript;
using Result = Acquisition::Result;

/// A server that answers after `latency`, and a client that is run against it until it is done.
class Attempt {
  public:
    explicit Attempt(Duration wait_timeout, Duration retry_interval = 50ms, LeaseTerms terms = {.ttl = 10s})
        : lease{kunci::LockKey{"lock:", "k"}, "token", terms, 1},
          acquisition{lease, {start, wait_timeout, retry_interval}, 2} {}

    using Server = std::function<Outcome(const Request&, TimePoint)>;

    Result run(const Server& server, Duration latency = 0ms) {
        while (acquisition.result() == Result::pending) {
            if (const auto request = acquisition.next_request(now)) {
                asked.push_back(now);
                const Outcome outcome = server(*request, now);
                now += latency;
                acquisition.on_outcome(request->node, request->id, outcome, now);
            } else {
                now = std::max(now, acquisition.wake_at());
            }
        }
        return acquisition.result();
    }

    [[nodiscard]] Duration elapsed() const { return now - start; }

    const TimePoint start{1h};
    TimePoint now = start;
    Lease lease;
    Acquisition acquisition;
    std::vector<TimePoint> asked;
};

Outcome busy(const Request& request, TimePoint) {
    return request.verb == Verb::set ? LeaseScript::taken() : LeaseScript::claim_refused(60'000);
}

TEST(Acquisition, without_patience_asks_once) {
    Attempt a{0ms};
    EXPECT_EQ(a.run(busy), Result::refused);
    EXPECT_EQ(a.asked.size(), 1U);
    EXPECT_EQ(a.acquisition.attempts(), 1U);
    EXPECT_EQ(a.elapsed(), 0ms);
}

TEST(Acquisition, waits_exactly_as_long_as_it_was_told) {
    for (const Duration wait : {Duration{1ms}, Duration{30ms}, Duration{333ms}, Duration{1s}}) {
        Attempt a{wait};
        EXPECT_EQ(a.run(busy), Result::refused);
        EXPECT_EQ(a.elapsed(), wait);
    }
}

TEST(Acquisition, looks_again_within_the_retry_interval_and_not_in_step) {
    Attempt a{10s, 100ms};
    a.run(busy);
    EXPECT_LE(a.asked.at(1) - a.asked.at(0), 50ms) << "a refused SET does not tell how long the key lives";
    Duration shortest = 1h;
    Duration longest = 0ms;
    for (std::size_t i = 2; i < a.asked.size(); ++i) {
        shortest = std::min(shortest, a.asked[i] - a.asked[i - 1]);
        longest = std::max(longest, a.asked[i] - a.asked[i - 1]);
    }
    EXPECT_GT(a.asked.size(), 50U);
    EXPECT_LE(longest, 100ms);
    EXPECT_GE(shortest, 50ms);
    EXPECT_GT(longest - shortest, 10ms);
}

TEST(Acquisition, looks_right_after_the_holders_key_has_ended) {
    Attempt a{10s, 5s};
    const TimePoint free_at = a.start + 5300ms;
    const auto server = [&](const Request& request, TimePoint now) {
        if (now > free_at) return LeaseScript::claimed();
        if (request.verb == Verb::set) return LeaseScript::taken();
        return LeaseScript::claim_refused((free_at - now) / 1ms);
    };
    EXPECT_EQ(a.run(server), Result::granted);
    EXPECT_LE(a.now, free_at + 2ms);
}

TEST(Acquisition, keeps_one_token_for_the_whole_wait) {
    Attempt a{1s};
    a.run([](const Request& request, TimePoint now) {
        EXPECT_EQ(request.command[request.verb == Verb::set ? 2 : 4], "token");
        return busy(request, now);
    });
    EXPECT_GT(a.asked.size(), 5U);
}

TEST(Acquisition, waits_out_a_passing_trouble) {
    Attempt a{5s};
    const auto server = [&](const Request&, TimePoint now) {
        return now < a.start + 2s ? LeaseScript::error("LOADING Redis is loading the dataset in memory")
                                  : LeaseScript::claimed();
    };
    EXPECT_EQ(a.run(server), Result::granted);
    EXPECT_LE(a.elapsed(), 2050ms);
}

TEST(Acquisition, does_not_hammer_a_server_that_cuts_every_connection) {
    Attempt a{2s};
    const auto cuts = [](const Request&, TimePoint) { return LeaseScript::maybe_executed(); };
    EXPECT_EQ(a.run(cuts), Result::failed);
    EXPECT_EQ(a.elapsed(), 2s);
    EXPECT_LE(a.asked.size(), 2U * 2s / 25ms);  // each try asks twice
}

TEST(Acquisition, does_not_overflow_on_a_holder_that_lives_almost_for_ever) {
    Attempt a{300ms};
    const auto server = [](const Request& request, TimePoint) {
        return request.verb == Verb::set
                   ? LeaseScript::taken()
                   : LeaseScript::claim_refused(std::numeric_limits<std::int64_t>::max());
    };
    EXPECT_EQ(a.run(server), Result::refused);
    EXPECT_EQ(a.elapsed(), 300ms);
    EXPECT_LE(a.asked.size(), 13U);
}

TEST(Acquisition, tells_the_trouble_when_it_does_not_pass) {
    Attempt a{500ms};
    const auto loading = [](const Request&, TimePoint) {
        return LeaseScript::error("LOADING Redis is loading the dataset in memory");
    };
    EXPECT_EQ(a.run(loading), Result::failed);
    EXPECT_EQ(a.elapsed(), 500ms);
    EXPECT_EQ(a.lease.verdict().code, Errc::loading);
    EXPECT_EQ(a.lease.verdict().code_word, "LOADING");
}

TEST(Acquisition, does_not_wait_for_what_waiting_cannot_mend) {
    Attempt a{10s};
    const auto denied = [](const Request&, TimePoint) {
        return LeaseScript::error("NOPERM this user has no permissions to run the 'set' command");
    };
    EXPECT_EQ(a.run(denied), Result::failed);
    EXPECT_EQ(a.asked.size(), 1U);
    EXPECT_EQ(a.elapsed(), 0ms);
}

TEST(Acquisition, is_not_locked_out_by_its_own_lost_reply) {
    Attempt a{3s};
    bool set = false;
    const auto server = [&](const Request& request, TimePoint) {
        if (request.verb == Verb::claim) return set ? LeaseScript::claimed() : LeaseScript::unreachable();
        set = true;  // executed, and the reply is lost
        a.now = request.deadline;
        return LeaseScript::maybe_executed();
    };
    EXPECT_EQ(a.run(server), Result::granted);
    EXPECT_LE(a.elapsed(), 1s);
}

TEST(Acquisition, ends_in_time_when_the_server_hangs) {
    Attempt a{400ms, 50ms, {.ttl = 30s, .operation_timeout = 200ms}};
    const auto hangs = [&](const Request& request, TimePoint) {
        a.now = request.deadline;
        return LeaseScript::maybe_executed();
    };
    EXPECT_EQ(a.run(hangs), Result::failed);
    EXPECT_EQ(a.elapsed(), 400ms);
    EXPECT_EQ(a.asked.size(), 2U);
    EXPECT_TRUE(a.lease.may_have_left_a_key());
}

TEST(Acquisition, recalls_only_the_request_that_nothing_follows) {
    Attempt a{400ms, 50ms, {.ttl = 30s, .operation_timeout = 150ms}};
    std::vector<bool> recall;
    a.run([&](const Request& request, TimePoint) {
        recall.push_back(request.recall);
        a.now = request.deadline;
        return LeaseScript::maybe_executed();
    });
    EXPECT_EQ(recall, (std::vector<bool>{false, false, true}));
}

TEST(Acquisition, never_claims_again_what_may_have_been_recalled) {
    for (const Duration wait :
         {Duration{0ms}, Duration{1ms}, Duration{70ms}, Duration{200ms}, Duration{777ms}}) {
        Attempt a{wait, 50ms, {.ttl = 30s, .operation_timeout = 200ms}};
        bool recalled = false;
        a.run([&](const Request& request, TimePoint) {
            EXPECT_FALSE(recalled) << wait.count();
            recalled = request.recall;
            a.now = request.deadline;  // the connection recalls at its deadline
            return LeaseScript::maybe_executed();
        });
        EXPECT_TRUE(recalled);
    }
}

TEST(Acquisition, gives_a_very_short_wait_one_fair_try) {
    Attempt a{1ms};
    const auto slow = [&](const Request&, TimePoint) { return LeaseScript::ok(); };
    EXPECT_EQ(a.run(slow, 20ms), Result::granted);
}

TEST(Acquisition, claims_again_what_was_granted_too_late) {
    Attempt a{5s, 50ms, {.ttl = 100ms, .operation_timeout = 2s}};
    int asked = 0;
    const auto server = [&](const Request& request, TimePoint) {
        ++asked;
        if (request.verb == Verb::set) {
            a.now += 100ms;  // the lease is over when this arrives
            return LeaseScript::ok();
        }
        return LeaseScript::claimed();
    };
    EXPECT_EQ(a.run(server), Result::granted);
    EXPECT_EQ(asked, 2);
}

TEST(Acquisition, waits_without_limit_when_told_so) {
    Attempt a{Duration::max(), 1h};
    const auto server = [&](const Request& request, TimePoint now) {
        return now < a.start + 24h * 365 ? busy(request, now) : LeaseScript::claimed();
    };
    EXPECT_EQ(a.run([&](const Request& request, TimePoint now) {
        return request.verb == Verb::set   ? LeaseScript::taken()
               : now < a.start + 24h * 365 ? LeaseScript::claim_refused(-1)
                                           : server(request, now);
    }),
              Result::granted);
}

Outcome refusal_of(const Request& request, std::int64_t holder_ttl) {
    return request.verb == Verb::set ? LeaseScript::taken() : LeaseScript::claim_refused(holder_ttl);
}

TEST(Acquisition, begins_no_try_whose_answer_would_come_too_late) {
    for (const auto wait : {101ms, 333ms, 1000ms}) {
        Attempt a{wait};
        EXPECT_EQ(a.run([](const Request& request, TimePoint) { return refusal_of(request, 60'000); }, 8ms),
                  Result::refused);
        EXPECT_EQ(a.elapsed(), wait);
        EXPECT_LE(a.asked.back() + 2 * 8ms, a.start + wait);
    }
}

TEST(Acquisition, stays_refused_though_the_last_try_could_not_be_sent_in_time) {
    Attempt a{500ms};
    const auto crowded = [&](const Request& request, TimePoint) -> Outcome {
        if (a.asked.size() < 4) return refusal_of(request, 7'000);
        return kunci::Fault::not_sent(Errc::not_sent_in_time, "other commands held the connection");
    };
    EXPECT_EQ(a.run(crowded), Result::refused);
    EXPECT_EQ(a.acquisition.holder_ttl(), 7s);
}

TEST(Acquisition, ends_at_once_when_it_is_cancelled) {
    Attempt a{10s};
    const auto request = a.acquisition.next_request(a.now);
    a.acquisition.on_outcome(0, request->id, LeaseScript::taken(), a.now);
    EXPECT_TRUE(a.acquisition.waiting());
    a.acquisition.cancel();
    EXPECT_EQ(a.acquisition.result(), Result::cancelled);
    EXPECT_FALSE(a.acquisition.next_request(a.now + 1h).has_value());
}

}  // namespace
