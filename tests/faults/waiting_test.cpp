// Waiting without noise: the answers to reports O66, O67 and O69 to O72, as far as they are about waiting at all.
// (O65 and O68 are about being woken and about order: they come with the queue of waiters.)
#include "support/actor.hpp"
#include "support/locks_on_redis.hpp"
#include "support/process_facts.hpp"
#include "support/recording_observer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace kunci::test {
namespace {

using namespace std::chrono_literals;

/// When each command that begins so was executed, in microseconds of the server's clock, while `action` ran.
std::vector<std::int64_t> times_of_commands(const RedisServer& server, const std::string& name,
                                            const auto& action) {
    RawClient monitor = server.control();
    monitor.command({"MONITOR"});
    action();
    server.command({"ECHO", "end-of-recording"});
    std::vector<std::int64_t> times;
    while (true) {
        const std::string line = monitor.read_reply().text();
        if (line.find("end-of-recording") != std::string::npos) return times;
        if (line.find("] \"" + name + "\"") == std::string::npos || line.find(" lua] ") != std::string::npos)
            continue;
        const auto dot = line.find('.');
        times.push_back(std::stoll(line.substr(0, dot)) * 1'000'000 + std::stoll(line.substr(dot + 1, 6)));
    }
}

/// Waiters of several clients for one taken lock, until the object goes.
class Waiters {
  public:
    Waiters(const RedisServer& server, int clients, int threads_each, TimeSpan retry_interval) {
        for (int c = 0; c < clients; ++c) clients_.push_back(client(server, {.observer = &observer_}));
        for (auto& locks : clients_) {
            for (int t = 0; t < threads_each; ++t) {
                threads_.emplace_back([this, &locks, retry_interval] {
                    std::error_code error;
                    while (!cancel_.stop_requested()) {
                        const auto guard = locks.lock("k",
                                                      {.ttl = 10s,
                                                       .wait_timeout = 60s,
                                                       .retry_interval = retry_interval,
                                                       .cancel = cancel_.get_token()},
                                                      error);
                    }
                });
            }
        }
        EXPECT_TRUE(observer_.await(Event::Kind::waiting, static_cast<std::size_t>(clients * threads_each)));
    }
    Waiters(const Waiters&) = delete;
    Waiters& operator=(const Waiters&) = delete;
    ~Waiters() { cancel_.request_stop(); }

  private:
    RecordingObserver observer_;
    std::stop_source cancel_;
    std::vector<Locks> clients_;
    std::vector<std::jthread> threads_;
};

void take(const RedisServer& server) {
    server.command({"SET", "lock:k", "stranger", "PX", "600000"});
}

// O66
TEST(Waiting, ends_with_the_ttl_of_a_holder_that_was_killed) {
    const RedisServer server;
    auto waiter = client(server);
    for (int i = 0; i < 3; ++i) {
        Actor holder{server.url()};
        ASSERT_EQ(holder.ask("lock k 600"), "locked");
        let_pass(std::chrono::milliseconds{150 * i});
        holder.kill();
        const auto took = time_of([&] { EXPECT_TRUE(waiter.lock("k", {.wait_timeout = 20s}).held()); });
        EXPECT_LE(took, 600ms + slack);
    }
}

// O69
TEST(Waiting, of_many_threads_needs_hardly_any_processor_and_few_commands) {
    const RedisServer server;
    take(server);
    const Waiters waiters{server, 1, 20, 500ms};
    const auto before = cpu_time();
    const auto commands = times_of_commands(server, "EVALSHA", [] { let_pass(2s); });
    EXPECT_LT(cpu_time() - before, 800ms) << "more than 2 % for each";
    EXPECT_GE(commands.size(), 20U * 2000 / 500 / 2);
    EXPECT_LE(commands.size(), 20U * 2000 / 250 + 20);
}

// O70
TEST(Waiting, does_not_march_in_step) {
    RedisServer server;
    take(server);
    const Waiters waiters{server, 4, 20, 200ms};
    const auto largest_share = [](const std::vector<std::int64_t>& times) {
        std::map<std::int64_t, std::size_t> buckets;
        std::size_t most = 0;
        for (const auto time : times) most = std::max(most, ++buckets[time / 1000]);
        return static_cast<double>(most) / static_cast<double>(times.size());
    };
    const auto calm = times_of_commands(server, "EVALSHA", [] { let_pass(600ms); });
    ASSERT_GT(calm.size(), 80U);
    EXPECT_LT(largest_share(calm), 0.3);
    server.kill();
    server.restart();
    take(server);
    const auto after = times_of_commands(server, "EVALSHA", [] { let_pass(600ms); });
    ASSERT_GT(after.size(), 80U);
    EXPECT_LT(largest_share(after), 0.3);
}

// O67, O71
TEST(Waiting, leaves_no_key_no_channel_no_descriptor_and_no_memory_for_any_name) {
    const RedisServer server;
    auto holder = client(server);
    auto waiter = client(server);
    const auto contend = [&](int from, int to) {
        for (int i = from; i < to; ++i) {
            const std::string name = "name" + std::to_string(i);
            auto token = holder.acquire(name, {.ttl = 30s});
            std::error_code error;
            ASSERT_FALSE(waiter.acquire(name, {.wait_timeout = 2ms}, error));
            ASSERT_TRUE(holder.release(token));
        }
    };
    contend(0, 200);  // whatever is allocated once
    const auto descriptors = open_descriptors();
    const auto memory = resident_bytes();
    contend(200, 1200);
    EXPECT_EQ(server.cli({"DBSIZE"}), "0");
    EXPECT_EQ(to_text(server.command({"PUBSUB", "CHANNELS"})), "");
    EXPECT_EQ(open_descriptors(), descriptors);
    EXPECT_TRUE(!memory_is_returned || resident_bytes() < memory + (1U << 20U));
}

// O72
TEST(Waiting, that_was_given_up_never_becomes_an_owner) {
    const RedisServer server;
    auto locks = client(server);
    auto guard = client(server).lock("k", {.ttl = 60s});
    {
        std::vector<std::jthread> waiters;
        for (int i = 0; i < 5; ++i) {
            waiters.emplace_back(
                [&] { EXPECT_FALSE(locks.try_lock("k", {.ttl = 60s, .wait_timeout = 200ms})); });
        }
    }
    ASSERT_TRUE(guard.release());
    EXPECT_LT(time_of([&] { EXPECT_TRUE(client(server).try_lock("k")); }), slack);
}

}  // namespace
}  // namespace kunci::test
