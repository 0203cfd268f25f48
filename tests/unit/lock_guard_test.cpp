#include <kunci/kunci.hpp>
#include <kunci/testing.hpp>

#include "support/model_bench.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;
using kunci::Errc;
using kunci::Event;
using kunci::LockGuard;
using kunci::Reply;
using kunci::TimePoint;
using kunci::test::ModelBench;
using kunci::test::StopAwaiter;

static_assert(!std::is_copy_constructible_v<LockGuard>);
static_assert(!std::is_copy_assignable_v<LockGuard>);
static_assert(std::is_nothrow_move_constructible_v<LockGuard>);
static_assert(std::is_nothrow_move_assignable_v<LockGuard>);
static_assert(std::is_nothrow_destructible_v<LockGuard>);

/// Lets time pass until the refresher is due, and waits for what comes of it.
void pass_to_refresh(ModelBench& bench, kunci::Duration ttl, Event::Kind expected = Event::Kind::refreshed) {
    const auto before = bench.observer.count(expected);
    ASSERT_TRUE(bench.clock.await_sleepers(2));  // the loss timer and the refresher
    bench.clock.advance(ttl / 3);
    ASSERT_TRUE(bench.observer.await(expected, before + 1));
}

// ---- keeping ----

TEST(LockGuard, keeps_the_lock_far_beyond_its_ttl) {
    ModelBench bench;
    auto guard = bench.locks.lock("k", {.ttl = 3s});
    for (int i = 0; i < 30; ++i) pass_to_refresh(bench, 3s);  // ten times the TTL
    EXPECT_TRUE(guard.held());
    EXPECT_FALSE(guard.stop_token().stop_requested());
    EXPECT_FALSE(bench.stranger.try_lock("k"));
    EXPECT_TRUE(guard.release());
}

TEST(LockGuard, is_valid_until_the_instant_of_the_design_to_the_nanosecond) {
    ModelBench bench;
    const TimePoint before = bench.clock.now();
    auto guard = bench.locks.lock("k", {.ttl = 10s, .auto_refresh = false});
    EXPECT_EQ(guard.valid_until(), before + 10s - 100ms - 2ms);
    EXPECT_EQ(guard.remaining(), 10s - 100ms - 2ms);
    bench.clock.advance(10s - 100ms - 2ms - 1ns);
    EXPECT_TRUE(guard.held());
    EXPECT_EQ(guard.remaining(), 1ns);
    EXPECT_FALSE(guard.stop_token().stop_requested());
    StopAwaiter stopped{guard.stop_token()};
    bench.clock.advance(1ns);
    EXPECT_FALSE(guard.held());
    EXPECT_EQ(guard.remaining(), 0ns);
    EXPECT_TRUE(stopped.await());
}

TEST(LockGuard, counts_from_before_the_command_was_sent) {
    ModelBench bench;
    const TimePoint before = bench.clock.now();
    bench.faults.delay(300ms);
    auto guard = bench.locks.lock("k", {.ttl = 10s});
    EXPECT_EQ(guard.valid_until(), before + 10s - 100ms - 2ms);
}

TEST(LockGuard, does_not_refresh_when_that_is_switched_off) {
    ModelBench bench;
    auto guard = bench.locks.lock("k", {.ttl = 3s, .auto_refresh = false});
    ASSERT_TRUE(bench.clock.await_sleepers(1));
    EXPECT_EQ(bench.clock.sleepers(), 1U);  // the loss timer alone
    StopAwaiter stopped{guard.stop_token()};
    bench.clock.advance(3s);
    EXPECT_TRUE(stopped.await());
    EXPECT_EQ(bench.commands("EVALSHA"), 0U);
}

TEST(LockGuard, stops_refreshing_after_the_longest_hold) {
    ModelBench bench;
    auto guard = bench.locks.lock("k", {.ttl = 3s, .max_hold = 5s});
    StopAwaiter stopped{guard.stop_token()};
    const TimePoint start = bench.clock.now();
    while (guard.held()) {
        const auto refreshed = bench.observer.count(Event::Kind::refreshed);
        ASSERT_TRUE(bench.clock.await_sleepers(2));
        bench.clock.advance(1s);
        if (bench.clock.now() < start + 5s) {
            ASSERT_TRUE(bench.observer.await(Event::Kind::refreshed, refreshed + 1));
        }
    }
    EXPECT_TRUE(stopped.await());
    EXPECT_LE(bench.clock.now(), start + 5s + 3s);
    bench.clock.advance(1s);
    EXPECT_TRUE(bench.stranger.try_lock("k"));
}

// ---- losing ----

TEST(LockGuard, is_told_when_the_server_gave_the_lock_away) {
    ModelBench bench;
    auto guard = bench.locks.lock("k", {.ttl = 3s});
    StopAwaiter stopped{guard.stop_token()};
    bench.server.command({"SET", "lock:k", "somebody else"});
    ASSERT_TRUE(bench.clock.await_sleepers(2));
    bench.clock.advance(1s);
    EXPECT_TRUE(stopped.await());
    EXPECT_FALSE(guard.held());
    EXPECT_EQ(bench.server.command({"GET", "lock:k"}).text(), "somebody else");
    ASSERT_TRUE(bench.observer.await(Event::Kind::lost));
    for (const auto& seen : bench.observer.seen()) {
        if (seen.event.kind == Event::Kind::lost) {
            EXPECT_NE(seen.detail.find("no longer holds it"), std::string::npos);
        }
    }
}

TEST(LockGuard, never_creates_again_a_key_that_is_gone) {
    ModelBench bench;
    auto guard = bench.locks.lock("k", {.ttl = 3s});
    StopAwaiter stopped{guard.stop_token()};
    bench.server.command({"DEL", "lock:k"});
    ASSERT_TRUE(bench.clock.await_sleepers(2));
    bench.clock.advance(1s);
    EXPECT_TRUE(stopped.await());
    EXPECT_FALSE(bench.exists("lock:k"));
    EXPECT_FALSE(guard.release());
}

TEST(LockGuard, is_lost_in_time_though_nothing_answers_and_only_once) {
    ModelBench bench;
    auto guard = bench.locks.lock("k", {.ttl = 3s});
    std::atomic<int> told = 0;
    const std::stop_callback count{guard.stop_token(), [&told] { ++told; }};
    StopAwaiter stopped{guard.stop_token()};
    bench.faults.cut_link();
    const TimePoint end = guard.valid_until();
    ASSERT_TRUE(bench.clock.await_sleepers(2));
    bench.clock.advance_to(end - 1ns);
    EXPECT_TRUE(guard.held());
    bench.clock.advance(1ns);
    EXPECT_FALSE(guard.held());
    EXPECT_TRUE(stopped.await());
    bench.faults.mend_link();
    bench.clock.advance(10s);
    EXPECT_FALSE(guard.held());
    ASSERT_TRUE(bench.observer.await(Event::Kind::lost));
    EXPECT_FALSE(guard.release());
    EXPECT_EQ(told, 1);
    EXPECT_EQ(bench.observer.count(Event::Kind::lost), 1U);
}

TEST(LockGuard, survives_refreshes_that_fail_for_a_while) {
    ModelBench bench;
    auto guard = bench.locks.lock("k", {.ttl = 3s});
    bench.faults.reply(Reply::error("LOADING Redis is loading the dataset in memory"),
                       {.command = "EVALSHA", .times = 3});
    pass_to_refresh(bench, 3s, Event::Kind::refresh_failed);
    for (int i = 0; i < 2; ++i) {
        const auto before = bench.observer.count(Event::Kind::refresh_failed);
        ASSERT_TRUE(bench.clock.await_sleepers(2));
        bench.clock.advance(200ms);
        ASSERT_TRUE(bench.observer.await(Event::Kind::refresh_failed, before + 1));
    }
    ASSERT_TRUE(bench.clock.await_sleepers(2));
    bench.clock.advance(200ms);
    ASSERT_TRUE(bench.observer.await(Event::Kind::refreshed));
    EXPECT_TRUE(guard.held());
    EXPECT_FALSE(guard.stop_token().stop_requested());
    EXPECT_TRUE(bench.faults.used_up());
}

TEST(LockGuard, is_not_lost_by_one_lost_reply_to_a_refresh) {
    ModelBench bench;
    auto guard = bench.locks.lock("k", {.ttl = 3s});
    bench.faults.drop_reply({.command = "EVALSHA"});
    pass_to_refresh(bench, 3s, Event::Kind::refresh_failed);
    ASSERT_TRUE(bench.clock.await_sleepers(2));
    bench.clock.advance(500ms);
    ASSERT_TRUE(bench.observer.await(Event::Kind::refreshed));
    EXPECT_TRUE(guard.held());
}

TEST(LockGuard, may_be_released_by_its_own_loss_callback) {
    ModelBench bench;
    auto guard = bench.locks.lock("k", {.ttl = 3s});
    std::atomic<int> answer = -1;
    const std::stop_callback on_loss{guard.stop_token(), [&] { answer = guard.release() ? 1 : 0; }};
    bench.server.command({"DEL", "lock:k"});
    ASSERT_TRUE(bench.clock.await_sleepers(2));
    bench.clock.advance(1s);
    while (answer == -1) std::this_thread::yield();
    EXPECT_EQ(answer, 0);
}

/// Tells when its client is gone.
class TrackedConnection {
  public:
    TrackedConnection(kunci::testing::InMemoryConnection inner, std::shared_ptr<int> alive)
        : inner_{std::move(inner)}, alive_{std::move(alive)} {}
    kunci::Outcome execute(const kunci::Command& command, kunci::Deadline deadline) {
        return inner_.execute(command, deadline);
    }

  private:
    kunci::testing::InMemoryConnection inner_;
    std::shared_ptr<int> alive_;
};

TEST(LockGuard, may_be_destroyed_by_its_own_loss_callback_as_the_last_of_its_client) {
    kunci::testing::ManualClock clock;
    kunci::testing::InMemoryServer server{clock};
    const auto alive = std::make_shared<int>();
    std::optional<LockGuard> guard;
    {
        kunci::DistributedLock locks{TrackedConnection{server.connect(), alive}, clock};
        guard.emplace(locks.lock("k", {.ttl = 3s}));
    }
    std::atomic<bool> destroyed = false;
    const std::stop_callback on_loss{guard->stop_token(), [&] {
                                         guard.reset();
                                         destroyed = true;
                                     }};
    server.command({"DEL", "lock:k"});
    ASSERT_TRUE(clock.await_sleepers(2));
    clock.advance(1s);
    while (!destroyed || alive.use_count() > 1) std::this_thread::yield();
    EXPECT_FALSE(guard);
}

TEST(LockGuard, delays_nobody_elses_loss_by_being_released_in_the_callback) {
    ModelBench bench;
    std::vector<LockGuard> guards;
    for (const char* key : {"a", "b", "c"})
        guards.push_back(bench.locks.lock(key, {.ttl = 3s, .auto_refresh = false}));
    const TimePoint end = guards[0].valid_until();
    std::atomic<int> told = 0;
    const auto release = [&](LockGuard& guard) {
        EXPECT_FALSE(guard.release());
        EXPECT_EQ(bench.clock.now(), end) << "a hung server was asked on the thread that tells the losses";
        ++told;
    };
    bench.faults.drop_request({.times = 100});  // each would take its whole timeout
    const std::stop_callback a{guards[0].stop_token(), [&] { release(guards[0]); }};
    const std::stop_callback b{guards[1].stop_token(), [&] { release(guards[1]); }};
    ASSERT_TRUE(bench.clock.await_sleepers(1));
    bench.faults.cut_link();  // so that the background does not move the clock while we look
    bench.clock.advance_to(end);
    while (told < 2) std::this_thread::yield();
}

TEST(LockGuard, is_lost_for_good_at_the_first_look_that_says_so) {
    ModelBench bench;
    auto guard = bench.locks.lock("k", {.ttl = 3s});
    StopAwaiter stopped{guard.stop_token()};
    ASSERT_TRUE(bench.clock.await_sleepers(2));
    bench.clock.advance_to(guard.valid_until());
    EXPECT_FALSE(guard.held());
    EXPECT_EQ(guard.remaining(), 0ns);
    EXPECT_TRUE(stopped.await());
    EXPECT_LE(guard.valid_until(), bench.clock.now());
}

// ---- releasing ----

TEST(LockGuard, sends_nothing_more_once_release_has_returned) {
    ModelBench bench;
    for (int i = 0; i < 200; ++i) {
        auto guard = bench.locks.lock("k", {.ttl = 3s});
        ASSERT_TRUE(guard.release());
        const auto sent = bench.server.command_count();
        bench.clock.advance(2s);
        ASSERT_EQ(bench.server.command_count(), sent);
    }
}

TEST(LockGuard, does_not_stop_its_token_when_it_is_released) {
    ModelBench bench;
    std::stop_token token;
    {
        auto guard = bench.locks.lock("k");
        token = guard.stop_token();
    }
    EXPECT_FALSE(token.stop_requested());
}

TEST(LockGuard, releases_although_the_work_was_told_to_stop) {
    ModelBench bench;
    std::stop_source work;
    {
        auto guard = bench.locks.lock("k", {.cancel = work.get_token()});
        work.request_stop();
    }
    EXPECT_FALSE(bench.exists("lock:k"));
}

TEST(LockGuard, can_be_released_again_after_a_release_without_answer) {
    ModelBench bench;
    auto guard = bench.locks.lock("k", {.ttl = 20s});
    bench.faults.cut_link();
    try {
        static_cast<void>(guard.release());
        FAIL();
    } catch (const kunci::ConnectionError& e) {
        EXPECT_EQ(e.code(), Errc::unreachable);
    }
    EXPECT_FALSE(guard.held());
    bench.faults.mend_link();
    EXPECT_TRUE(guard.release());
    EXPECT_FALSE(bench.exists("lock:k"));
}

TEST(LockGuard, reports_a_failed_release_through_an_error_code_too) {
    ModelBench bench;
    auto guard = bench.locks.lock("k", {.ttl = 20s});
    bench.faults.cut_link();
    std::error_code error;
    EXPECT_FALSE(guard.release(error));
    EXPECT_EQ(error, Errc::unreachable);
    bench.faults.mend_link();
    EXPECT_TRUE(guard.release(error));
    EXPECT_FALSE(error);
}

TEST(LockGuard, knows_that_it_was_released_by_a_lost_first_attempt) {
    kunci::testing::ManualClock clock;
    kunci::testing::InMemoryServer server{clock};
    kunci::testing::FaultPlan faults;  // without a clock: the loss shows at once
    kunci::DistributedLock locks{kunci::testing::FaultyConnection{server.connect(), faults}, clock};
    auto guard = locks.lock("k", {.ttl = 20s});
    faults.drop_reply({.command = "EVALSHA"});
    EXPECT_TRUE(guard.release());
    EXPECT_TRUE(faults.used_up());
}

TEST(LockGuard, leaves_a_release_that_failed_in_the_destructor_to_the_background) {
    ModelBench bench;
    {
        auto guard = bench.locks.lock("k", {.ttl = 20s});
        bench.faults.cut_link();
    }
    EXPECT_TRUE(bench.exists("lock:k"));
    EXPECT_EQ(bench.observer.count(Event::Kind::release_failed), 1U);
    ASSERT_TRUE(bench.clock.await_sleepers(2));  // the loss timer and the background releaser
    bench.faults.mend_link();
    while (bench.exists("lock:k")) {
        // Only when both sleep, so that time does not run away from a slow thread.
        if (bench.clock.sleepers() >= 2) bench.clock.advance(10ms);
        std::this_thread::yield();
    }
    EXPECT_LT(bench.clock.now(), TimePoint{1000h} + 15s) << "it must be the release, not the TTL";
}

TEST(LockGuard, lets_the_exception_of_the_body_through_when_the_server_is_gone) {
    ModelBench bench;
    try {
        auto guard = bench.locks.lock("k", {.ttl = 20s});
        bench.faults.cut_link();
        throw std::runtime_error{"from the body"};
    } catch (const std::runtime_error& e) {
        EXPECT_STREQ(e.what(), "from the body");
    }
}

TEST(LockGuard, is_released_by_exactly_one_of_many_threads) {
    ModelBench bench;
    constexpr int threads = 8;
    for (int round = 0; round < 50; ++round) {
        auto guard = bench.locks.lock("k");
        std::atomic<int> released = 0;
        {
            std::barrier start{threads};
            std::vector<std::jthread> all;
            for (int i = 0; i < threads; ++i) {
                all.emplace_back([&] {
                    start.arrive_and_wait();
                    if (guard.release()) ++released;
                });
            }
        }
        ASSERT_EQ(released, 1);
    }
}

TEST(LockGuard, may_be_destroyed_on_another_thread) {
    ModelBench bench;
    auto guard = bench.locks.lock("k");
    std::jthread{[moved = std::move(guard)] { EXPECT_TRUE(moved.held()); }}.join();
    EXPECT_FALSE(bench.exists("lock:k"));
}

TEST(LockGuard, releases_every_one_of_a_vector) {
    ModelBench bench;
    std::vector<LockGuard> guards;
    for (const char* key : {"a", "b", "c"}) guards.push_back(bench.locks.lock(key));
    guards.erase(guards.begin());
    EXPECT_FALSE(bench.exists("lock:a"));
    EXPECT_TRUE(bench.exists("lock:b"));
    guards.clear();
    EXPECT_FALSE(bench.exists("lock:b"));
    EXPECT_FALSE(bench.exists("lock:c"));
}

// ---- observers that misbehave ----

class Misbehaving final : public kunci::Observer {
  public:
    void on_event(const Event& event) override {
        LockGuard* mine = guard;
        if (event.kind == Event::Kind::refreshed && mine != nullptr) released = mine->release();
        throw std::runtime_error{"from the observer"};
    }
    std::atomic<LockGuard*> guard = nullptr;
    std::atomic<bool> released = false;
};

TEST(LockGuard, is_not_disturbed_by_an_observer_that_throws_and_releases_on_the_refreshers_thread) {
    kunci::testing::ManualClock clock;
    kunci::testing::InMemoryServer server{clock};
    Misbehaving observer;
    kunci::DistributedLock locks{server.connect(), clock, {.observer = &observer}};
    {
        auto guard = locks.lock("k", {.ttl = 3s});
        observer.guard = &guard;
        ASSERT_TRUE(clock.await_sleepers(2));
        clock.advance(1s);
        while (!observer.released) std::this_thread::yield();
        EXPECT_FALSE(guard.held());
        observer.guard = nullptr;
    }
    EXPECT_EQ(server.command({"EXISTS", "lock:k"}).integer(), 0);
}

/// Gives up on everything as soon as one refresh fails.
class Pessimist final : public kunci::Observer {
  public:
    void on_event(const Event& event) override {
        if (event.kind != Event::Kind::refresh_failed) return;
        ++failures;
        while (failures < 2) std::this_thread::yield();  // both refreshers are here at once
        std::error_code ignored;
        for (auto* guard : guards) static_cast<void>(guard->release(ignored));
        ++done;
    }
    std::vector<LockGuard*> guards;
    std::atomic<int> failures = 0;
    std::atomic<int> done = 0;
};

TEST(LockGuard, may_be_released_by_an_observer_on_the_refresher_of_another) {
    kunci::testing::ManualClock clock;
    kunci::testing::InMemoryServer server{clock};
    kunci::testing::FaultPlan faults{clock};
    Pessimist observer;
    kunci::DistributedLock locks{
        kunci::testing::FaultyConnection{server.connect(), faults}, clock, {.observer = &observer}};
    auto a = locks.lock("a", {.ttl = 3s});
    auto b = locks.lock("b", {.ttl = 3s});
    observer.guards = {&a, &b};
    ASSERT_TRUE(clock.await_sleepers(3));
    faults.cut_link();
    clock.advance(1s);
    while (observer.done < 2) std::this_thread::yield();
    EXPECT_FALSE(a.held());
    EXPECT_FALSE(b.held());
}

}  // namespace
