// A lock is kept alive exactly as long as it should be: the answers to reports O23 to O32.
#include "support/locks_on_redis.hpp"
#include "support/monitor.hpp"
#include "support/process_facts.hpp"
#include "support/recording_observer.hpp"
#include "support/server_faults.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace kunci::test {
namespace {

using namespace std::chrono_literals;
using Kind = Event::Kind;

// O26
TEST(Refreshing, leaves_nothing_behind_a_release_though_the_link_is_slow_and_uneven) {
    const RedisServer server;
    Relay relay{server.port()};
    auto locks = client(relay);
    relay.delay(Relay::Way::both, 0ms, 10ms);
    for (int i = 0; i < 60; ++i) {
        {
            const auto guard = locks.lock("k", {.ttl = 60ms});
            let_pass(15ms);
        }
        ASSERT_EQ(server.cli({"EXISTS", "lock:k"}), "0");
    }
    let_pass(60ms);
    EXPECT_EQ(server.cli({"EXISTS", "lock:k"}), "0");
}

// O25
TEST(Refreshing, of_a_later_tenure_does_not_suffer_from_the_loss_of_an_earlier_one) {
    const RedisServer server;
    Relay relay{server.port()};
    auto locks = client(relay, {.operation_timeout = 100ms});
    {
        const auto guard = locks.lock("k", {.ttl = 400ms});
        relay.cut();
        relay.refuse();
        ASSERT_TRUE(poll_until([&] { return guard.stop_token().stop_requested(); }, 5s));
        relay.heal();
    }
    const auto guard = locks.lock("k", {.ttl = 600ms, .wait_timeout = 5s});
    for (const auto end = std::chrono::steady_clock::now() + 2s; std::chrono::steady_clock::now() < end;) {
        ASSERT_GT(server.command({"PTTL", "lock:k"}).integer(), 0);
        ASSERT_TRUE(guard.held());
    }
}

// O25
TEST(Refreshing, of_one_thread_is_not_disturbed_by_another_one_with_the_same_name) {
    const RedisServer server;
    RecordingObserver observer;
    auto locks = client(server, {.observer = &observer});
    const auto end = std::chrono::steady_clock::now() + 3s;
    {
        std::vector<std::jthread> threads;
        for (int t = 0; t < 2; ++t) {
            threads.emplace_back([&] {
                while (std::chrono::steady_clock::now() < end) {
                    const auto guard = locks.lock("k", {.ttl = 300ms, .wait_timeout = 20s});
                    let_pass(500ms);
                    EXPECT_TRUE(guard.held());
                }
            });
        }
    }
    EXPECT_EQ(observer.count(Kind::lost), 0U);
    EXPECT_GE(observer.count(Kind::acquired), 4U);
}

// O27, O52
TEST(Refreshing, finds_out_that_the_key_is_gone_or_taken_and_touches_nothing) {
    const RedisServer server;
    auto locks = client(server);
    constexpr auto ttl = 900ms;
    const auto expect_loss = [&](const std::vector<std::string>& command, const std::string& left) {
        auto guard = locks.lock("k", {.ttl = ttl});
        server.command(command);
        const auto took = time_of([&] {
            EXPECT_TRUE(poll_until([&] { return guard.stop_token().stop_requested(); }, 5s)) << command[0];
        });
        EXPECT_LT(took, ttl / 3 + slack);
        EXPECT_FALSE(guard.held());
        EXPECT_EQ(to_text(server.command({"GET", "lock:k"})), left);
        EXPECT_FALSE(guard.release());
        EXPECT_EQ(to_text(server.command({"GET", "lock:k"})), left);
        server.command({"FLUSHALL"});
    };
    expect_loss({"DEL", "lock:k"}, "(nil)");
    expect_loss({"SET", "lock:k", "other"}, "other");
    expect_loss({"FLUSHALL"}, "(nil)");
}

// O28
TEST(Refreshing, ends_for_a_holder_that_is_stuck) {
    const RedisServer server;
    auto holder = client(server);
    auto other = client(server);
    const auto stuck = holder.lock("k", {.ttl = 300ms, .max_hold = 700ms});
    const auto took = time_of([&] { EXPECT_TRUE(other.lock("k", {.wait_timeout = 10s}).held()); });
    EXPECT_GE(took, 500ms);
    EXPECT_LE(took, 700ms + 300ms + slack);
    EXPECT_FALSE(stuck.held());
    EXPECT_TRUE(stuck.stop_token().stop_requested());
}

// O29
TEST(Refreshing, ends_with_its_guard_however_that_ends) {
    const RedisServer server;
    const auto threads = threads_of_this_process();
    {
        auto locks = client(server);
        const auto is_free = [&](const char* key) {
            return server.command({"EXISTS", std::string{"lock:"} + key}).integer() == 0;
        };
        { const auto destroyed = locks.lock("a", {.ttl = 60s}); }
        EXPECT_TRUE(is_free("a"));

        auto from = locks.lock("b", {.ttl = 60s});
        auto to = locks.lock("c", {.ttl = 60s});
        to = std::move(from);
        EXPECT_TRUE(is_free("c")) << "what it held before is released";
        EXPECT_FALSE(is_free("b"));
        auto* same = &to;
        to = std::move(*same);
        EXPECT_TRUE(to.held()) << "moved onto itself";
        EXPECT_FALSE(from.held());  // NOLINT(bugprone-use-after-move): that is the question
        EXPECT_FALSE(from.release());
        EXPECT_TRUE(to.release());

        std::vector<LockGuard> many;
        for (const auto* key : {"d", "e", "f"}) many.push_back(locks.lock(key, {.ttl = 60s}));
        many.erase(many.begin());
        EXPECT_TRUE(is_free("d"));
        EXPECT_FALSE(is_free("e"));
        many.clear();
        EXPECT_EQ(server.cli({"DBSIZE"}), "0");
    }
    EXPECT_TRUE(poll_until([&] { return threads_of_this_process() == threads; }, 5s));
}

// O30
TEST(Refreshing, ends_once_though_many_threads_release_the_guard_at_once) {
    const RedisServer server;
    auto locks = client(server);
    constexpr int threads = 8;
    constexpr int rounds = 100;
    std::optional<LockGuard> guard;
    std::atomic<int> released = 0;
    std::barrier start{threads + 1};
    {
        std::vector<std::jthread> crew;
        for (int t = 0; t < threads; ++t) {
            crew.emplace_back([&] {
                for (int i = 0; i < rounds; ++i) {
                    start.arrive_and_wait();
                    if (guard->release()) ++released;
                    start.arrive_and_wait();
                }
            });
        }
        for (int i = 0; i < rounds; ++i) {
            guard = locks.lock("k", {.ttl = 30ms});
            start.arrive_and_wait();
            start.arrive_and_wait();
        }
    }
    EXPECT_LE(released, rounds);
    EXPECT_GE(released, rounds / 2) << "few were lost before, by their short TTL";
    EXPECT_EQ(server.cli({"DBSIZE"}), "0");
}

// O30
TEST(Refreshing, release_may_run_into_the_loss_callback) {
    const RedisServer server;
    auto locks = client(server);
    for (int i = 0; i < 20; ++i) {
        // A name of its own: what is lost is given back in the background.
        auto guard = locks.lock("k" + std::to_string(i), {.ttl = 20ms, .auto_refresh = false});
        std::atomic<int> released = 0;
        const std::stop_callback also{guard.stop_token(), [&] { released += guard.release() ? 1 : 0; }};
        while (guard.remaining() > 1ms) {
        }
        released += guard.release() ? 1 : 0;
        EXPECT_LE(released, 1);
    }
}

/// Throws whatever it is told.
class ThrowingObserver final : public Observer {
  public:
    void on_event(const Event&) override {
        ++events;
        throw std::runtime_error{"from an observer"};
    }
    std::atomic<int> events = 0;
};

// O31
TEST(Refreshing, lets_no_exception_out_of_its_thread) {
    RedisServer server;
    ThrowingObserver observer;
    auto locks = client(server, {.operation_timeout = 100ms, .observer = &observer});
    const auto guard = locks.lock("k", {.ttl = 500ms});
    server.kill();
    EXPECT_TRUE(poll_until([&] { return guard.stop_token().stop_requested(); }, 5s));
    EXPECT_GT(observer.events, 2);  // acquired, failures, lost
}

struct Outage {
    const char* name;
    std::function<std::shared_ptr<void>(RedisServer&, Relay&)> begin;
};

class TransientTrouble : public ::testing::TestWithParam<Outage> {
  protected:
    [[nodiscard]] std::shared_ptr<void> begin_outage() { return GetParam().begin(server_, relay_); }

    RedisServer server_;
    Relay relay_{server_.port()};
    RecordingObserver observer_;
    Locks locks_ = client(relay_, {.operation_timeout = 200ms, .observer = &observer_});
};

template <typename Fault>
Outage outage(const char* name) {
    return {name, [](RedisServer& server, Relay&) { return std::make_shared<Fault>(server); }};
}

INSTANTIATE_TEST_SUITE_P(
    Refreshing, TransientTrouble,
    ::testing::Values(Outage{"refused_connections",
                             [](RedisServer&, Relay& relay) {
                                 relay.refuse();
                                 relay.cut();
                                 return std::shared_ptr<void>{&relay, [](Relay* r) { r->heal(); }};
                             }},
                      Outage{"black_hole",
                             [](RedisServer&, Relay& relay) {
                                 relay.drop(Relay::Way::both);
                                 return std::shared_ptr<void>{&relay, [](Relay* r) { r->heal(); }};
                             }},
                      Outage{"stopped_server",
                             [](RedisServer& server, Relay&) {
                                 server.pause();
                                 return std::shared_ptr<void>{&server, [](RedisServer* s) { s->resume(); }};
                             }},
                      outage<BusyScript>("busy_script"), outage<Demoted>("replica"),
                      outage<Orphaned>("orphan"), outage<TooFewReplicas>("too_few_replicas")),
    [](const auto& each) { return std::string{each.param.name}; });

// O32, O47, O50, O51
TEST_P(TransientTrouble, shorter_than_the_lease_loses_nothing) {
    auto guard = locks_.lock("k", {.ttl = 3s});
    ASSERT_TRUE(observer_.await(Kind::refreshed));
    {
        const auto trouble = begin_outage();
        ASSERT_TRUE(observer_.await(Kind::refresh_failed));
    }
    const auto refreshed = observer_.count(Kind::refreshed);
    EXPECT_TRUE(observer_.await(Kind::refreshed, refreshed + 1));
    EXPECT_TRUE(guard.held());
    EXPECT_EQ(observer_.count(Kind::lost), 0U);
    EXPECT_TRUE(guard.release());
}

// O32, O47, O50
TEST_P(TransientTrouble, longer_than_the_lease_loses_it_once_and_in_time) {
    auto guard = locks_.lock("k", {.ttl = 500ms});
    {
        const auto trouble = begin_outage();
        ASSERT_TRUE(observer_.await(Kind::lost));
        EXPECT_FALSE(guard.held());
        EXPECT_LE(SteadyClock::now(), guard.valid_until() + slack);
        std::error_code error;
        EXPECT_FALSE(guard.release(error)) << "not ours any more, or an error: never success";
    }
    auto next = locks_.lock("k", {.ttl = 30s, .wait_timeout = 5s});
    EXPECT_TRUE(next.held());
    EXPECT_EQ(observer_.count(Kind::lost), 1U);
}

}  // namespace
}  // namespace kunci::test
