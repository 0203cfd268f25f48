// The same machine on several nodes: what an independent quorum rests on.
#include <kunci/protocol/lease.hpp>

#include "support/lease_script.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace {

using namespace std::chrono_literals;
using kunci::Duration;
using kunci::TimePoint;
using kunci::protocol::Lease;
using kunci::protocol::LeaseTerms;
using kunci::protocol::Verb;
using kunci::test::LeaseScript;
using Phase = Lease::Phase;
using Try = Lease::Try;

constexpr LeaseTerms five_nodes{.nodes = 5, .ttl = 10s};
constexpr Duration validity = 10s - 100ms - 2ms;

TEST(LeaseOnFiveNodes, asks_all_at_once) {
    LeaseScript s{five_nodes};
    s.lease.begin(s.now + 1s, true);
    const auto requests = s.requests();
    ASSERT_EQ(requests.size(), 5U);
    for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(requests[i].node, i);
}

TEST(LeaseOnFiveNodes, is_held_as_soon_as_three_have_granted) {
    LeaseScript s{five_nodes};
    s.lease.begin(s.now + 1s, true);
    const auto requests = s.requests();
    s.answer(requests[4], LeaseScript::ok());
    s.answer(requests[0], LeaseScript::ok());
    EXPECT_EQ(s.lease.phase(), Phase::acquiring);
    s.answer(requests[2], LeaseScript::ok());
    EXPECT_EQ(s.lease.phase(), Phase::held);
}

TEST(LeaseOnFiveNodes, is_refused_as_soon_as_no_quorum_is_left) {
    LeaseScript s{five_nodes};
    s.lease.begin(s.now + 1s, true);
    const auto requests = s.requests();
    s.answer(requests[0], LeaseScript::ok());
    s.answer(requests[1], LeaseScript::taken());
    s.answer(requests[2], LeaseScript::taken());
    EXPECT_EQ(s.lease.try_state(), Try::pending);
    s.answer(requests[3], LeaseScript::taken());
    EXPECT_EQ(s.lease.try_state(), Try::refused);
    EXPECT_TRUE(s.lease.may_have_left_a_key());
}

TEST(LeaseOnFiveNodes, fails_rather_than_being_refused_when_too_many_could_not_be_asked) {
    LeaseScript s{five_nodes};
    s.lease.begin(s.now + 1s, true);
    const auto requests = s.requests();
    s.answer(requests[0], LeaseScript::taken());
    s.answer(requests[1], LeaseScript::unreachable());
    s.answer(requests[2], LeaseScript::unreachable());
    EXPECT_EQ(s.lease.try_state(), Try::failed);
    EXPECT_EQ(s.lease.verdict().code, kunci::Errc::unreachable);
}

TEST(LeaseOnFiveNodes, counts_the_quorum_over_all_nodes_not_over_the_reachable_ones) {
    LeaseScript s{five_nodes};
    s.lease.begin(s.now + 1s, true);
    const auto requests = s.requests();
    for (const int dead : {0, 1, 2})
        s.answer(requests[static_cast<std::size_t>(dead)], LeaseScript::unreachable());
    EXPECT_EQ(s.lease.try_state(), Try::failed);
    s.answer(requests[3], LeaseScript::ok());
    s.answer(requests[4], LeaseScript::ok());
    EXPECT_NE(s.lease.phase(), Phase::held);
}

TEST(LeaseOnFiveNodes, is_valid_as_long_as_the_third_longest_of_its_nodes) {
    LeaseScript s{five_nodes};
    s.acquire();
    const TimePoint acquired = s.now;
    EXPECT_EQ(s.lease.valid_until(), acquired + validity);
    s.now = s.lease.wake_at();
    // Refresh two nodes: the third longest is still an old one.
    std::size_t refreshed = 0;
    TimePoint last;
    while (refreshed < 2) {
        if (const auto request = s.lease.next_request(s.now)) {
            last = s.now;
            s.answer(*request, LeaseScript::integer(1000));
            ++refreshed;
        } else {
            s.now = s.lease.wake_at();
        }
    }
    EXPECT_EQ(s.lease.valid_until(), acquired + validity);
    while (refreshed < 3) {
        if (const auto request = s.lease.next_request(s.now)) {
            s.answer(*request, LeaseScript::integer(1000));
            ++refreshed;
        } else {
            s.now = s.lease.wake_at();
        }
    }
    EXPECT_GT(s.lease.valid_until(), acquired + validity);
    EXPECT_LE(s.lease.valid_until(), last + validity);
}

TEST(LeaseOnFiveNodes, survives_two_nodes_that_lost_it_and_not_three) {
    LeaseScript s{five_nodes};
    s.acquire();
    std::size_t gone = 0;
    while (gone < 3) {
        s.now = s.lease.wake_at();
        while (const auto request = s.lease.next_request(s.now)) {
            const bool lost = request->node < 3;
            s.answer(*request, LeaseScript::integer(lost ? -2 : 1000));
            if (lost) ++gone;
            if (gone == 3) break;
            EXPECT_EQ(s.lease.phase(), Phase::held);
        }
    }
    EXPECT_EQ(s.lease.phase(), Phase::lost);
}

TEST(LeaseOnFiveNodes, asks_every_node_that_was_ever_asked_for_the_release) {
    LeaseScript s{five_nodes};
    s.lease.begin(s.now + 1s, true);
    const auto requests = s.requests();
    s.answer(requests[0], LeaseScript::ok());
    for (const std::size_t i : {1U, 2U, 3U}) s.answer(requests[i], LeaseScript::taken());
    s.lease.release(s.now, s.now + 10s, true);
    EXPECT_EQ(s.requests().size(), 4U);  // node 4 has not answered yet
    s.answer(requests[4], LeaseScript::ok());
    const auto late = s.requests();
    ASSERT_EQ(late.size(), 1U);
    EXPECT_EQ(late[0].node, 4U);
    EXPECT_EQ(late[0].verb, Verb::release);
}

}  // namespace
