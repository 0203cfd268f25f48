// A lock that cannot be kept is told to be lost in time, whatever hangs; and nothing of it is left behind.
#include <kunci/hiredis.hpp>
#include <kunci/kunci.hpp>

#include "support/locks_on_redis.hpp"
#include "support/process_facts.hpp"
#include "support/redis_server.hpp"
#include "support/relay.hpp"
#include "support/slack.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace kunci::test {
namespace {

using namespace std::chrono_literals;

/// Notes when a stop is requested.
class StopTime {
  public:
    explicit StopTime(const std::stop_token& token) : callback_{token, Note{this}} {}

    [[nodiscard]] bool await() {
        return poll_until([this] { return at_.load() != TimePoint::min(); }, 10s);
    }
    [[nodiscard]] TimePoint at() const { return at_; }
    [[nodiscard]] int times() const { return times_; }

  private:
    struct Note {
        StopTime* self;
        void operator()() const {
            ++self->times_;
            self->at_ = SteadyClock::now();
        }
    };

    std::atomic<TimePoint> at_{TimePoint::min()};
    std::atomic<int> times_{0};
    std::stop_callback<Note> callback_;
};

/// A way in which a server stops to answer.
struct Silence {
    const char* name;
    std::function<void(RedisServer&, Relay&)> begin;
};

class LossInTime : public ::testing::TestWithParam<Silence> {
  protected:
    RedisServer server_;
    Relay relay_{server_.port()};
    Locks locks_ = client(relay_, {.operation_timeout = 200ms});
};

INSTANTIATE_TEST_SUITE_P(
    Whatever, LossInTime,
    ::testing::Values(Silence{"the_server_stands_still", [](RedisServer& server, Relay&) { server.pause(); }},
                      Silence{"the_server_is_killed", [](RedisServer& server, Relay&) { server.kill(); }},
                      Silence{"the_link_swallows_everything",
                              [](RedisServer&, Relay& relay) { relay.drop(Relay::Way::both); }},
                      Silence{"the_link_takes_nothing_more",
                              [](RedisServer&, Relay& relay) { relay.hold(Relay::Way::both); }},
                      Silence{"the_link_swallows_the_replies",
                              [](RedisServer&, Relay& relay) { relay.drop(Relay::Way::to_client); }},
                      Silence{"the_link_is_cut",
                              [](RedisServer&, Relay& relay) {
                                  relay.refuse();
                                  relay.cut();
                              }},
                      Silence{"the_replies_trickle",
                              [](RedisServer&, Relay& relay) {
                                  relay.trickle(Relay::Way::to_client, 1, 400ms);
                              }}),
    [](const auto& each) { return std::string{each.param.name}; });

TEST_P(LossInTime, held_turns_false_at_valid_until_and_neither_before_nor_after) {
    const auto guard = locks_.lock("k", {.ttl = 400ms});
    GetParam().begin(server_, relay_);
    while (true) {
        const TimePoint before = SteadyClock::now();
        const TimePoint end = guard.valid_until();  // a refresh that was under way may still move it
        const bool held = guard.held();
        const TimePoint after = SteadyClock::now();
        if (guard.valid_until() != end) continue;
        ASSERT_TRUE(held || after >= end) << "lost before its time";
        ASSERT_FALSE(held && before >= end) << "held beyond its time";
        if (before >= end + 20ms) break;
    }
}

TEST_P(LossInTime, the_stop_token_fires_once_at_valid_until_and_within_20_ms) {
    constexpr int guards = 9;
    std::vector<LockGuard> held;
    std::vector<std::unique_ptr<StopTime>> stops;
    for (int i = 0; i < guards; ++i) {
        held.push_back(locks_.lock("k" + std::to_string(i), {.ttl = 400ms}));
        stops.push_back(std::make_unique<StopTime>(held.back().stop_token()));
    }
    GetParam().begin(server_, relay_);
    std::vector<Duration> late;
    for (std::size_t i = 0; i < guards; ++i) {
        ASSERT_TRUE(stops[i]->await());
        late.push_back(stops[i]->at() - held[i].valid_until());
        EXPECT_EQ(stops[i]->times(), 1);
        EXPECT_FALSE(held[i].held());
    }
    std::ranges::sort(late);
    EXPECT_GE(late.front(), 0ms) << "told before its time";
    EXPECT_LE(late[guards / 2], 20ms);
    EXPECT_LE(late.back(), 20ms + slack);
}

TEST(LossInTimeOnRedis, valid_until_counts_from_before_the_command_less_the_allowance) {
    const RedisServer server;
    auto locks = client(server);
    for (const auto ttl : {50ms, 1000ms, 30000ms}) {
        const Duration validity = Duration{ttl} - Duration{ttl} / 100 - 2ms;
        const TimePoint before = SteadyClock::now();
        const auto guard = locks.lock("k" + std::to_string(ttl.count()), {.ttl = ttl});
        const TimePoint after = SteadyClock::now();
        EXPECT_GE(guard.valid_until(), before + validity);
        EXPECT_LE(guard.valid_until(), after + validity);
        // The server keeps the key for longer than we believe in it.
        const auto left = std::chrono::milliseconds{
            server.command({"PTTL", "lock:k" + std::to_string(ttl.count())}).integer()};
        EXPECT_LE(guard.remaining(), left);
    }
}

// ---- nothing is left behind ----

/// Runs `action(i)` for 0 <= i < count on as many threads as given.
void share_out(int count, int threads, const std::function<void(int)>& action) {
    std::atomic<int> next = 0;
    std::vector<std::jthread> crew;
    for (int t = 0; t < threads; ++t) {
        crew.emplace_back([&] {
            for (int i = next++; i < count; i = next++) action(i);
        });
    }
}

TEST(NothingLeftBehind, by_a_thousand_guards_that_end_while_the_server_stands_still) {
    constexpr int guards = 1000;
    constexpr auto operation_timeout = 100ms;
    RedisServer server;
    const auto threads = threads_of_this_process();
    std::optional<Locks> locks{client(server, {.operation_timeout = operation_timeout})};
    const auto round = [&](bool pause) {
        std::vector<std::optional<LockGuard>> held(guards);
        share_out(guards, 8, [&](int i) {
            held[static_cast<std::size_t>(i)] =
                locks->lock("k" + std::to_string(i), {.ttl = 30s, .wait_timeout = 5s});
        });
        if (pause) server.pause();
        std::atomic<Duration> longest{Duration::zero()};
        share_out(guards, 50, [&](int i) {
            const Duration took = time_of([&] { held[static_cast<std::size_t>(i)].reset(); });
            for (Duration seen = longest; took > seen && !longest.compare_exchange_weak(seen, took);) {
            }
        });
        server.resume();
        return longest.load();
    };
    round(false);  // whatever is allocated once
    const auto descriptors = open_descriptors();
    const auto memory = resident_bytes();

    const auto paused = SteadyClock::now();
    EXPECT_LE(round(true), 2 * operation_timeout + slack) << "a destructor took longer than it may";
    EXPECT_LT(SteadyClock::now() - paused, 10s);
    EXPECT_TRUE(poll_until([&] { return server.command({"DBSIZE"}).integer() == 0; }, 10s))
        << "keys are left that live for 30 s";
    locks.reset();
    EXPECT_TRUE(poll_until([&] { return threads_of_this_process() == threads; }, 10s));
    EXPECT_LE(open_descriptors(), descriptors);
    EXPECT_TRUE(!memory_is_returned || resident_bytes() < memory + memory / 4) << "memory grew";
}

TEST(NothingLeftBehind, by_acquires_and_tries_while_the_server_stands_still_for_five_seconds) {
    RedisServer server;
    auto locks = client(server, {.operation_timeout = 200ms});
    ASSERT_TRUE(locks.release(locks.acquire("warm-up")));
    const auto threads = threads_of_this_process();
    const auto descriptors = open_descriptors();
    server.pause();
    const auto end = SteadyClock::now() + 5s;
    std::atomic<int> attempts = 0;
    share_out(1000, 100, [&](int i) {
        if (SteadyClock::now() >= end) return;
        std::error_code error;
        const Duration took = time_of([&] {
            const auto guard = locks.try_lock("k" + std::to_string(i), {.ttl = 30s}, error);
            EXPECT_FALSE(guard);
        });
        EXPECT_TRUE(error == Errc::maybe_executed || error == Errc::unreachable) << error.message();
        EXPECT_LT(took, 200ms + slack);
        ++attempts;
    });
    EXPECT_GT(attempts, 100);
    server.resume();
    EXPECT_TRUE(poll_until([&] { return server.command({"DBSIZE"}).integer() == 0; }, 10s))
        << "ghosts are left that live for 30 s";
    EXPECT_TRUE(poll_until([&] { return threads_of_this_process() == threads; }, 10s));
    EXPECT_LE(open_descriptors(), descriptors);
}

TEST(OneHungServer, delays_nothing_on_another_one) {
    RedisServer hung;
    const RedisServer sound;
    auto hung_locks = client(hung, {.operation_timeout = 100ms});
    auto sound_locks = client(sound);
    std::vector<LockGuard> lost;
    for (int i = 0; i < 20; ++i) lost.push_back(hung_locks.lock("k" + std::to_string(i), {.ttl = 600ms}));
    const auto kept = sound_locks.lock("kept", {.ttl = 600ms});
    StopTime stopped{lost.back().stop_token()};
    hung.pause();
    std::jthread stuck{[&] {
        std::error_code error;
        EXPECT_FALSE(hung_locks.lock("other", {.wait_timeout = 1s}, error));
    }};
    std::vector<Duration> cycles;
    for (const auto end = SteadyClock::now() + 1500ms; SteadyClock::now() < end;) {
        cycles.push_back(time_of([&] { EXPECT_TRUE(sound_locks.try_lock("k")); }));
        ASSERT_TRUE(kept.held());
    }
    std::ranges::sort(cycles);
    EXPECT_LT(cycles[cycles.size() / 2], 20ms);
    EXPECT_LT(cycles.back(), slack);
    EXPECT_FALSE(kept.stop_token().stop_requested());
    EXPECT_TRUE(stopped.await());
    EXPECT_LE(stopped.at(), lost.back().valid_until() + 20ms + slack);
}

}  // namespace
}  // namespace kunci::test
