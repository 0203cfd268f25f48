#include <kunci/testing/manual_clock.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using kunci::TimePoint;
using kunci::Wakeup;
using kunci::testing::ManualClock;

TEST(ManualClock, starts_after_the_epoch_at_a_whole_millisecond) {
    const ManualClock clock;
    EXPECT_GT(clock.now(), TimePoint{});
    EXPECT_EQ(clock.now().time_since_epoch() % 1ms, 0ms);
}

TEST(ManualClock, moves_only_when_it_is_told_to) {
    ManualClock clock;
    const TimePoint start = clock.now();
    EXPECT_EQ(clock.now(), start);
    clock.advance(31s);
    EXPECT_EQ(clock.now(), start + 31s);
    clock.advance(0s);
    EXPECT_EQ(clock.now(), start + 31s);
    clock.advance_to(start + 40s);
    EXPECT_EQ(clock.now(), start + 40s);
}

TEST(ManualClock, never_goes_backwards) {
    ManualClock clock;
    const TimePoint start = clock.now();
    EXPECT_THROW(clock.advance(-1ns), std::invalid_argument);
    clock.advance_to(start - 1s);
    EXPECT_EQ(clock.now(), start);
}

TEST(ManualClock, stops_at_the_end_of_time_instead_of_wrapping_round) {
    ManualClock clock;
    clock.advance(std::chrono::hours::max());
    EXPECT_EQ(clock.now(), TimePoint::max());
}

TEST(ManualClock, does_not_sleep_until_an_instant_that_has_come) {
    ManualClock clock;
    Wakeup wakeup;
    clock.sleep_until(wakeup, clock.now());
    clock.sleep_until(wakeup, clock.now() - 1h);
    EXPECT_EQ(clock.sleepers(), 0U);
}

/// A thread that sleeps once on the clock.
class SleepingThread {
  public:
    SleepingThread(ManualClock& clock, TimePoint until)
        : thread_{[this, &clock, until] { clock.sleep_until(wakeup_, until); }} {}

    void signal() { wakeup_.signal(); }
    void join() { thread_.join(); }

  private:
    Wakeup wakeup_;
    std::jthread thread_;
};

TEST(ManualClock, wakes_a_sleeper_when_its_time_comes_and_not_before) {
    ManualClock clock;
    SleepingThread sleeper{clock, clock.now() + 10s};
    ASSERT_TRUE(clock.await_sleepers(1));
    clock.advance(10s - 1ns);
    EXPECT_EQ(clock.sleepers(), 1U);
    clock.advance(1ns);
    EXPECT_EQ(clock.sleepers(), 0U) << "whoever was woken no longer counts, though its thread may be slow";
    sleeper.join();
}

TEST(ManualClock, wakes_a_sleeper_that_is_signalled_before_its_time) {
    ManualClock clock;
    SleepingThread sleeper{clock, TimePoint::max()};
    ASSERT_TRUE(clock.await_sleepers(1));
    sleeper.signal();
    sleeper.join();
    EXPECT_EQ(clock.sleepers(), 0U);
}

TEST(ManualClock, keeps_a_signal_that_comes_before_the_sleep) {
    ManualClock clock;
    Wakeup wakeup;
    wakeup.signal();
    clock.sleep_until(wakeup, TimePoint::max());
    EXPECT_EQ(clock.sleepers(), 0U);
}

TEST(ManualClock, wakes_only_those_whose_time_has_come) {
    ManualClock clock;
    SleepingThread first{clock, clock.now() + 1s};
    SleepingThread second{clock, clock.now() + 2s};
    SleepingThread third{clock, clock.now() + 3s};
    ASSERT_TRUE(clock.await_sleepers(3));
    clock.advance(2s);
    first.join();
    second.join();
    EXPECT_EQ(clock.sleepers(), 1U);
    clock.advance(1s);
    third.join();
}

TEST(ManualClock, tells_when_nobody_comes_to_sleep) {
    const ManualClock clock;
    EXPECT_TRUE(clock.await_sleepers(0));
    EXPECT_FALSE(clock.await_sleepers(1, 1ms));
}

TEST(ManualClock, loses_no_wake_up_and_touches_no_dead_sleeper_while_many_come_and_go) {
    constexpr int threads = 4;
    constexpr int sleeps = 500;
    ManualClock clock;
    std::atomic<int> asleep_too_early{0};
    std::atomic<int> running{threads};
    std::vector<std::jthread> sleepers;
    for (int i = 0; i < threads; ++i) {
        sleepers.emplace_back([&] {
            for (int n = 0; n < sleeps; ++n) {
                Wakeup wakeup;  // gone right after the sleep: advance() must not know it any more
                const TimePoint until = clock.now() + 1ms;
                clock.sleep_until(wakeup, until);
                if (clock.now() < until) ++asleep_too_early;
            }
            --running;
        });
    }
    while (running.load() > 0) clock.advance(1ms);
    sleepers.clear();
    EXPECT_EQ(asleep_too_early.load(), 0);
    EXPECT_EQ(clock.sleepers(), 0U);
}

}  // namespace
