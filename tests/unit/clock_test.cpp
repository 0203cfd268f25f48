#include <kunci/clock.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace {

using namespace std::chrono_literals;
using kunci::SystemClock;
using kunci::TimePoint;
using kunci::Wakeup;

TEST(Wakeup, keeps_a_signal_that_comes_before_the_sleep) {
    Wakeup wakeup;
    wakeup.signal();
    EXPECT_TRUE(wakeup.wait_for(1h));
}

TEST(Wakeup, is_used_up_by_one_sleep) {
    Wakeup wakeup;
    wakeup.signal();
    wakeup.signal();
    EXPECT_TRUE(wakeup.wait_for(1h));
    EXPECT_FALSE(wakeup.wait_for(1ms));
}

TEST(Wakeup, ends_the_sleep_of_another_thread) {
    Wakeup wakeup;
    std::jthread sleeper{[&] { wakeup.wait(); }};
    wakeup.signal();
}

TEST(SystemClock, sleeps_until_the_instant_and_not_longer_than_a_second) {
    auto& clock = SystemClock::instance();
    Wakeup wakeup;
    const TimePoint start = clock.now();
    clock.sleep_until(wakeup, start + 5ms);
    EXPECT_GE(clock.now(), start + 5ms);
    // An instant that will never come: it looks again now and then, since the machine may have been suspended.
    clock.sleep_until(wakeup, TimePoint::max());
    EXPECT_GE(clock.now(), start + 1s);
}

TEST(SystemClock, does_not_wait_for_what_has_passed) {
    auto& clock = SystemClock::instance();
    Wakeup wakeup;
    clock.sleep_until(wakeup, clock.now() - 1h);
    clock.sleep_until(wakeup, TimePoint::min());
}

TEST(SystemClock, is_woken_by_a_signal) {
    auto& clock = SystemClock::instance();
    Wakeup wakeup;
    wakeup.signal();
    const TimePoint start = clock.now();
    clock.sleep_until(wakeup, start + 1h);
    EXPECT_LT(clock.now(), start + 500ms);
}

}  // namespace
