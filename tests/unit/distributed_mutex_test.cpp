#include <kunci/distributed_mutex.hpp>

#include "support/model_bench.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using kunci::DistributedMutex;
using kunci::test::ModelBench;
using kunci::test::StopAwaiter;

TEST(DistributedMutex, works_with_the_standard_lock_types) {
    ModelBench bench;
    DistributedMutex from{bench.locks, "account:1", {.ttl = 5s}};
    DistributedMutex to{bench.locks, "account:2", {.ttl = 5s}};
    {
        const std::scoped_lock both{from, to};
        EXPECT_TRUE(bench.exists("lock:account:1"));
        EXPECT_TRUE(bench.exists("lock:account:2"));
    }
    EXPECT_FALSE(bench.exists("lock:account:1"));
    EXPECT_FALSE(bench.exists("lock:account:2"));
    const std::unique_lock timed{from, 200ms};
    EXPECT_TRUE(timed.owns_lock());
    const std::unique_lock tried{to, std::try_to_lock};
    EXPECT_TRUE(tried.owns_lock());
}

TEST(DistributedMutex, gives_back_the_first_when_the_second_is_taken) {
    ModelBench bench;
    const auto taken = bench.stranger.acquire("b");
    DistributedMutex a{bench.locks, "a", {.ttl = 5s}};
    DistributedMutex b{bench.locks, "b", {.ttl = 5s}};
    EXPECT_EQ(std::try_lock(a, b), 1);
    EXPECT_FALSE(bench.exists("lock:a"));
}

TEST(DistributedMutex, bounds_lock_where_it_was_told_to) {
    ModelBench bench;
    const auto taken = bench.stranger.acquire("k", {.ttl = 1h});
    DistributedMutex mutex{bench.locks, "k", {.wait_timeout = 1s}};
    std::jthread waiter{[&] { EXPECT_THROW(mutex.lock(), kunci::LockAcquisitionFailed); }};
    ASSERT_TRUE(bench.observer.await(kunci::Event::Kind::waiting));
    ASSERT_TRUE(bench.clock.await_sleepers(1));
    bench.clock.advance(1s);
}

TEST(DistributedMutex, excludes_the_threads_of_one_process_too) {
    ModelBench bench;
    DistributedMutex mutex{bench.locks, "k", {.ttl = 5s}};
    mutex.lock();
    std::jthread{[&] {
        EXPECT_FALSE(mutex.try_lock());
        EXPECT_FALSE(mutex.held());  // it is the other thread that holds it
    }}.join();
    mutex.unlock();
    std::jthread{[&] {
        EXPECT_TRUE(mutex.try_lock());
        mutex.unlock();
    }}.join();
}

TEST(DistributedMutex, ends_the_tenure_of_the_thread_that_unlocks_not_the_next_ones) {
    ModelBench bench;
    DistributedMutex mutex{bench.locks, "k", {.ttl = 3s, .auto_refresh = false}};
    ASSERT_TRUE(mutex.try_lock());
    StopAwaiter lost{mutex.stop_token()};
    bench.clock.advance(4s);
    EXPECT_TRUE(lost.await());
    EXPECT_FALSE(mutex.held());
    std::jthread{[&] {
        ASSERT_TRUE(mutex.try_lock());
        EXPECT_TRUE(mutex.held());
    }}.join();
    mutex.unlock();  // ends our lost tenure, and leaves the other thread's alone
    EXPECT_TRUE(bench.exists("lock:k"));
    mutex.unlock();  // the only one left
    EXPECT_FALSE(bench.exists("lock:k"));
}

TEST(DistributedMutex, may_be_unlocked_where_nothing_is_locked) {
    ModelBench bench;
    DistributedMutex mutex{bench.locks, "k"};
    mutex.unlock();
    EXPECT_EQ(bench.server.command_count(), 0U);
}

TEST(DistributedMutex, unlocks_a_moved_lock_that_was_lost_before_one_that_is_held) {
    ModelBench bench;
    DistributedMutex mutex{bench.locks, "k", {.ttl = 3s, .auto_refresh = false}};
    const auto lock_elsewhere = [&] { std::jthread{[&] { ASSERT_TRUE(mutex.try_lock()); }}.join(); };
    lock_elsewhere();
    bench.clock.advance(4s);
    lock_elsewhere();
    mutex.unlock();
    EXPECT_TRUE(bench.exists("lock:k"));
    mutex.unlock();
    EXPECT_FALSE(bench.exists("lock:k"));
}

TEST(DistributedMutex, takes_any_instant_for_a_limit) {
    ModelBench bench;
    const auto taken = bench.stranger.acquire("k");
    DistributedMutex mutex{bench.locks, "k"};
    EXPECT_FALSE(mutex.try_lock_until(std::chrono::system_clock::time_point::min()));
    EXPECT_FALSE(mutex.try_lock_until(std::chrono::steady_clock::time_point{}));
}

TEST(DistributedMutex, refuses_what_makes_no_sense_at_once) {
    ModelBench bench;
    EXPECT_THROW((DistributedMutex{bench.locks, ""}), std::invalid_argument);
    EXPECT_THROW((DistributedMutex{bench.locks, "k", {.retry_interval = 0ms}}), std::invalid_argument);
    EXPECT_THROW((DistributedMutex{bench.locks, "k", {.ttl = 0ms}}), std::invalid_argument);
}

}  // namespace
