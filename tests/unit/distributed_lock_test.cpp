// The lock under faults, on the model server: what is lost, late or refused, and what is left behind.
#include <kunci/kunci.hpp>
#include <kunci/testing.hpp>

#include "support/model_bench.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using kunci::Errc;
using kunci::Event;
using kunci::Reply;
using kunci::TimePoint;
using kunci::test::ModelBench;

template <typename Action>
std::error_code code_of(Action action) {
    try {
        action();
    } catch (const kunci::Error& e) {
        return e.code();
    }
    return {};
}

TEST(DistributedLock, sends_one_set_and_one_evalsha_and_nothing_else) {
    ModelBench bench;
    bench.server.command({"SCRIPT", "LOAD", kunci::scripts::release.text});
    const auto token = bench.locks.acquire("daily-notif", {.ttl = 60s});
    ASSERT_TRUE(bench.locks.release(token));
    const std::string secret{token.token()};
    const std::vector<std::vector<std::string>> expected{
        {"SET", "lock:daily-notif", secret, "NX", "EX", "60"},
        {"EVALSHA", std::string{kunci::scripts::release.sha1}, "1", "lock:daily-notif", secret}};
    EXPECT_EQ(bench.server.commands(), expected);
}

TEST(DistributedLock, puts_the_prefix_of_the_client_before_the_key) {
    ModelBench bench{{.key_prefix = "app:"}};
    const auto token = bench.locks.acquire("k");
    EXPECT_EQ(token.key(), "app:k");
    EXPECT_TRUE(bench.exists("app:k"));
}

TEST(DistributedLock, uses_the_drift_factor_of_the_client) {
    ModelBench bench{{.drift_factor = 0.1}};
    const TimePoint now = bench.clock.now();
    EXPECT_EQ(bench.locks.acquire("k", {.ttl = 10s}).valid_until(), now + 9s - 2ms);
}

TEST(DistributedLock, refuses_client_options_that_make_no_sense) {
    const auto make = [](kunci::ClientOptions options) { const ModelBench bench{options}; };
    EXPECT_THROW(make({.drift_factor = -0.1}), std::invalid_argument);
    EXPECT_THROW(make({.drift_factor = 1.0}), std::invalid_argument);
    EXPECT_THROW(make({.operation_timeout = 0ms}), std::invalid_argument);
    EXPECT_THROW(make({.operation_timeout = -1s}), std::invalid_argument);
}

// ---- three outcomes ----

TEST(DistributedLock, tells_taken_from_broken) {
    ModelBench bench;
    const auto held = bench.stranger.acquire("taken");
    EXPECT_EQ(code_of([&] { static_cast<void>(bench.locks.acquire("taken")); }), Errc::lock_held);

    bench.faults.cut_link();
    EXPECT_EQ(code_of([&] { static_cast<void>(bench.locks.try_acquire("k")); }), Errc::unreachable);
    bench.faults.mend_link();

    bench.faults.reply(Reply::error("OOM command not allowed when used memory > 'maxmemory'."));
    try {
        static_cast<void>(bench.locks.try_lock("k"));
        FAIL();
    } catch (const kunci::ServerError& e) {
        EXPECT_EQ(e.code(), Errc::server_refused);
        EXPECT_EQ(e.code_word(), "OOM");
        EXPECT_NE(std::string{e.what()}.find("maxmemory"), std::string::npos);
    }

    bench.faults.reply(Reply::error("NOPERM this user has no permissions to run the 'set' command"));
    EXPECT_EQ(code_of([&] { static_cast<void>(bench.locks.try_lock("k")); }), Errc::not_permitted);
    bench.faults.reply(Reply::error("MOVED 3999 127.0.0.1:6381"));
    EXPECT_EQ(code_of([&] { static_cast<void>(bench.locks.try_lock("k")); }), Errc::misconfigured);
}

TEST(DistributedLock, never_calls_an_unknown_outcome_refused) {
    ModelBench bench;
    bench.faults.drop_reply({.command = "SET"});
    std::error_code error;
    EXPECT_FALSE(bench.locks.try_acquire("k", {}, error));
    EXPECT_EQ(error, Errc::maybe_executed);
}

TEST(DistributedLock, remembers_the_doubt_when_the_server_dies_after_a_lost_reply) {
    ModelBench bench;
    kunci::testing::FaultPlan faults;  // without a clock: the loss shows at once
    kunci::DistributedLock locks{kunci::testing::FaultyConnection{bench.server.connect(), faults},
                                 bench.clock};
    faults.drop_reply({.command = "SET", .then_cut_link = true});
    EXPECT_EQ(code_of([&] { static_cast<void>(locks.try_acquire("k")); }), Errc::maybe_executed);
}

// ---- lost replies ----

TEST(DistributedLock, is_not_locked_out_by_its_own_lost_reply) {
    ModelBench bench;
    bench.faults.drop_reply({.command = "SET"});
    const auto token = bench.locks.acquire("k", {.ttl = 10s, .wait_timeout = 3s});
    EXPECT_EQ(bench.server.command({"GET", "lock:k"}).text(), token.token());
    // Counted from the command that was answered, not from the lost one.
    EXPECT_EQ(token.valid_until(), bench.clock.now() + 10s - 100ms - 2ms);
    EXPECT_TRUE(bench.locks.release(token));
}

TEST(DistributedLock, leaves_no_ghost_when_it_gives_up) {
    ModelBench bench;
    bench.faults.drop_reply({.command = "SET"});
    EXPECT_EQ(code_of([&] { static_cast<void>(bench.locks.try_acquire("k", {.ttl = 30s})); }),
              Errc::maybe_executed);
    // The release went out behind the SET, on the same connection.
    EXPECT_FALSE(bench.exists("lock:k"));
    EXPECT_TRUE(bench.stranger.try_acquire("k"));
}

TEST(DistributedLock, removes_a_ghost_behind_a_dead_link_in_the_background) {
    ModelBench bench;
    bench.faults.drop_reply({.command = "SET", .then_cut_link = true});
    EXPECT_EQ(code_of([&] { static_cast<void>(bench.locks.try_acquire("k", {.ttl = 30s})); }),
              Errc::maybe_executed);
    EXPECT_TRUE(bench.exists("lock:k"));
    ASSERT_TRUE(bench.clock.await_sleepers(1));
    bench.faults.mend_link();
    const TimePoint mended = bench.clock.now();
    while (bench.exists("lock:k")) {
        ASSERT_TRUE(bench.clock.await_sleepers(1));
        bench.clock.advance(50ms);
        ASSERT_LE(bench.clock.now(), mended + 1s);
    }
}

TEST(DistributedLock, is_never_slower_than_a_stranger_after_its_own_ghost) {
    ModelBench bench;
    bench.faults.drop_request({.command = "SET"});
    EXPECT_EQ(code_of([&] { static_cast<void>(bench.locks.try_acquire("k", {.ttl = 30s})); }),
              Errc::maybe_executed);
    EXPECT_TRUE(bench.locks.try_acquire("k", {.ttl = 30s}));
}

TEST(DistributedLock, is_not_held_when_the_grant_came_too_late) {
    ModelBench bench;
    bench.faults.delay(300ms, {.command = "SET"});
    // Executed after 300 ms, with a TTL of 300 ms counted from before: nothing is left of it.
    EXPECT_EQ(code_of([&] { static_cast<void>(bench.locks.try_acquire("k", {.ttl = 300ms})); }),
              Errc::lease_lost);
    ASSERT_TRUE(bench.observer.await(Event::Kind::failed));
    // The key is ours on the server, and is given back in the background.
    while (bench.exists("lock:k")) std::this_thread::yield();
}

TEST(DistributedLock, can_release_again_what_got_no_answer) {
    ModelBench bench;
    const auto token = bench.locks.acquire("k", {.ttl = 20s});
    bench.faults.drop_request({.command = "EVALSHA"});
    EXPECT_EQ(code_of([&] { static_cast<void>(bench.locks.release(token)); }), Errc::maybe_executed);
    EXPECT_TRUE(bench.locks.release(token));
}

TEST(DistributedLock, keeps_the_validity_of_a_token_whose_refresh_got_no_answer) {
    ModelBench bench;
    auto token = bench.locks.acquire("k", {.ttl = 20s});
    const TimePoint before = token.valid_until();
    bench.faults.drop_reply({.command = "EVALSHA"});
    EXPECT_EQ(code_of([&] { static_cast<void>(bench.locks.refresh(token, 60s)); }), Errc::maybe_executed);
    EXPECT_EQ(token.valid_until(), before);
    EXPECT_TRUE(bench.locks.refresh(token, 60s));
    EXPECT_GT(token.valid_until(), before);
}

TEST(DistributedLock, does_not_revive_a_token_whose_validity_has_ended) {
    ModelBench bench;
    auto token = bench.locks.acquire("k", {.ttl = 10s});
    bench.clock.advance_to(token.valid_until());
    ASSERT_TRUE(bench.exists("lock:k"));  // for the clocks' allowance
    const auto sent = bench.server.command_count();
    EXPECT_FALSE(bench.locks.refresh(token, 60s));
    EXPECT_EQ(bench.server.command_count(), sent);
}

TEST(DistributedLock, knows_that_a_release_with_a_lost_reply_has_released) {
    ModelBench bench;
    kunci::testing::FaultPlan faults;  // without a clock: the loss shows at once
    kunci::DistributedLock locks{kunci::testing::FaultyConnection{bench.server.connect(), faults},
                                 bench.clock};
    bench.server.command({"SCRIPT", "LOAD", kunci::scripts::release.text});
    auto token = locks.acquire("k", {.ttl = 30s});
    faults.drop_reply({.command = "EVALSHA"});
    EXPECT_TRUE(locks.release(token));

    auto other = locks.acquire("k", {.ttl = 30s});
    const kunci::LockToken rebuilt{other.key(), other.token()};
    faults.drop_reply({.command = "EVALSHA"});
    EXPECT_EQ(code_of([&] { static_cast<void>(locks.release(rebuilt)); }), Errc::maybe_executed)
        << "without its validity nobody can know whether it was released or had expired";
}

TEST(DistributedLock, never_refreshes_a_token_whose_release_may_still_come_into_effect) {
    ModelBench bench;
    auto token = bench.locks.acquire("k", {.ttl = 30s});
    bench.faults.drop_request({.command = "EVALSHA"});
    EXPECT_EQ(code_of([&] { static_cast<void>(bench.locks.release(token)); }), Errc::maybe_executed);
    ASSERT_TRUE(bench.exists("lock:k"));
    EXPECT_FALSE(bench.locks.refresh(token, 60s));
    EXPECT_TRUE(bench.locks.release(token));
}

TEST(DistributedLock, does_not_revive_a_token_by_a_reply_that_came_too_late) {
    ModelBench bench;
    auto token = bench.locks.acquire("k", {.ttl = 1s});
    bench.clock.advance(900ms);
    bench.faults.delay(89ms, {.command = "EVALSHA"});  // past valid_until, before the server ends the key
    EXPECT_FALSE(bench.locks.refresh(token, 60s));
    while (bench.exists("lock:k")) std::this_thread::yield();  // given back in the background
}

TEST(DistributedLock, does_not_say_that_nothing_was_executed_after_an_attempt_that_may_have_been) {
    ModelBench bench;
    kunci::testing::FaultPlan faults;  // without a clock: the loss shows at once
    kunci::DistributedLock locks{kunci::testing::FaultyConnection{bench.server.connect(), faults},
                                 bench.clock};
    auto token = locks.acquire("k", {.ttl = 30s});
    bench.server.command({"SCRIPT", "LOAD", kunci::scripts::release.text});
    faults.drop_reply({.command = "EVALSHA", .then_cut_link = true});
    EXPECT_EQ(code_of([&] { static_cast<void>(locks.release(token)); }), Errc::maybe_executed);
}

// ---- waiting ----

TEST(DistributedLock, waits_for_the_holder_and_takes_over) {
    ModelBench bench;
    const auto held = bench.stranger.acquire("k", {.ttl = 10s});
    std::jthread waiter{[&] {
        auto guard = bench.locks.lock("k", {.ttl = 10s, .wait_timeout = 5s});
        EXPECT_TRUE(guard.held());
        EXPECT_EQ(bench.clock.now(), TimePoint{1000h} + 1s);
    }};
    ASSERT_TRUE(bench.observer.await(Event::Kind::waiting));
    ASSERT_TRUE(bench.clock.await_sleepers(1));
    ASSERT_TRUE(bench.stranger.release(held));
    bench.clock.advance(1s);
}

TEST(DistributedLock, tells_how_long_the_holder_would_live_on_when_the_wait_is_over) {
    ModelBench bench;
    const auto held = bench.stranger.acquire("k", {.ttl = 10s});
    std::jthread waiter{[&] {
        try {
            static_cast<void>(bench.locks.lock("k", {.wait_timeout = 2s, .retry_interval = 500ms}));
            FAIL();
        } catch (const kunci::LockAcquisitionFailed& e) {
            EXPECT_EQ(e.holder_ttl(), 9500ms);
            EXPECT_EQ(e.attempts(), 2U);
            EXPECT_EQ(bench.clock.now(), TimePoint{1000h} + 2s);
        }
    }};
    ASSERT_TRUE(bench.clock.await_sleepers(1));
    bench.clock.advance(500ms);
    ASSERT_TRUE(bench.clock.await_sleepers(1));  // it has looked again
    bench.clock.advance_to(TimePoint{1000h} + 2s);
}

TEST(DistributedLock, is_cancelled_at_once_and_leaves_nothing) {
    ModelBench bench;
    const auto held = bench.stranger.acquire("k", {.ttl = 10s});
    std::stop_source cancel;
    std::jthread waiter{[&] {
        EXPECT_THROW(
            static_cast<void>(bench.locks.lock("k", {.wait_timeout = 1h, .cancel = cancel.get_token()})),
            kunci::WaitCancelled);
        EXPECT_EQ(bench.clock.now(), TimePoint{1000h});
    }};
    ASSERT_TRUE(bench.observer.await(Event::Kind::waiting));
    cancel.request_stop();
    waiter.join();
    EXPECT_EQ(bench.server.command({"GET", "lock:k"}).text(), held.token());
    EXPECT_TRUE(bench.stranger.release(held));
    EXPECT_TRUE(bench.stranger.try_acquire("k"));
}

TEST(DistributedLock, does_not_even_begin_when_it_was_cancelled_before) {
    ModelBench bench;
    std::stop_source cancel;
    cancel.request_stop();
    std::error_code error;
    EXPECT_FALSE(bench.locks.try_lock("k", {.cancel = cancel.get_token()}, error));
    EXPECT_EQ(error, Errc::cancelled);
    EXPECT_EQ(bench.server.command_count(), 0U);
}

// ---- what an observer sees ----

TEST(DistributedLock, tells_its_observer_everything_but_the_secret) {
    ModelBench bench;
    {
        auto guard = bench.locks.lock("k", {.ttl = 10s});
        EXPECT_FALSE(bench.locks.try_lock("k"));
    }
    bench.faults.cut_link();
    EXPECT_EQ(code_of([&] { static_cast<void>(bench.locks.try_lock("other")); }), Errc::unreachable);
    std::vector<Event::Kind> kinds;
    for (const auto& seen : bench.observer.seen()) kinds.push_back(seen.event.kind);
    EXPECT_EQ(kinds, (std::vector{Event::Kind::acquired, Event::Kind::refused, Event::Kind::released,
                                  Event::Kind::failed}));
    const auto seen = bench.observer.seen();
    EXPECT_EQ(seen[0].key, "lock:k");
    EXPECT_EQ(seen[0].event.attempts, 1U);
    EXPECT_EQ(seen[0].event.validity_left, 10s - 100ms - 2ms);
    EXPECT_EQ(seen[1].event.error, Errc::lock_held);
    EXPECT_EQ(seen[3].event.error, Errc::unreachable);
    EXPECT_FALSE(seen[3].detail.empty());
}

class ThrowingConnection {
  public:
    kunci::Outcome execute(const kunci::Command&, kunci::Deadline) {
        throw std::runtime_error{"out of something"};
    }
};

TEST(DistributedLock, takes_an_exception_of_the_connection_for_an_unknown_outcome) {
    kunci::DistributedLock locks{ThrowingConnection{}};
    try {
        static_cast<void>(locks.try_acquire("k", {.ttl = 50ms}));
        FAIL();
    } catch (const kunci::ConnectionError& e) {
        EXPECT_EQ(e.code(), Errc::maybe_executed);
        EXPECT_NE(std::string{e.what()}.find("out of something"), std::string::npos);
    }
}

}  // namespace
