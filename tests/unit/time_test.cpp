#include <kunci/time.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <stdexcept>

namespace {

using namespace std::chrono_literals;
using kunci::Duration;
using kunci::TimePoint;
using kunci::TimeSpan;

TEST(TimeSpan, takes_durations_of_any_unit) {
    EXPECT_EQ(TimeSpan{2s}.value(), 2'000'000'000ns);
    EXPECT_EQ(TimeSpan{1500us}.value(), 1'500'000ns);
    EXPECT_EQ(TimeSpan{std::chrono::duration<double>{0.75}}.value(), 750ms);
    EXPECT_EQ((TimeSpan{std::chrono::duration<int, std::ratio<1, 3>>{1}}.value()), 333'333'334ns);
}

TEST(TimeSpan, rounds_fractions_of_a_nanosecond_up) {
    using Picoseconds = std::chrono::duration<std::int64_t, std::pico>;
    EXPECT_EQ(TimeSpan{Picoseconds{1}}.value(), 1ns);
    EXPECT_EQ((TimeSpan{std::chrono::duration<double, std::nano>{0.25}}.value()), 1ns);
    EXPECT_EQ((TimeSpan{std::chrono::duration<double, std::nano>{-0.25}}.value()), 0ns);
}

TEST(TimeSpan, saturates_where_nanoseconds_would_overflow) {
    EXPECT_EQ(TimeSpan{std::chrono::hours::max()}, TimeSpan::max());
    EXPECT_EQ(TimeSpan{std::chrono::milliseconds::max()}, TimeSpan::max());
    EXPECT_EQ(TimeSpan{std::chrono::hours::min()}.value(), Duration::min());
    EXPECT_EQ(TimeSpan{std::chrono::duration<double>{1e300}}, TimeSpan::max());
    EXPECT_EQ(TimeSpan{std::chrono::duration<double>{-1e300}}.value(), Duration::min());
    EXPECT_EQ(TimeSpan{Duration::max()}, TimeSpan::max());
}

TEST(TimeSpan, refuses_what_is_not_a_number) {
    const std::chrono::duration<double> nan{std::numeric_limits<double>::quiet_NaN()};
    EXPECT_THROW(TimeSpan{nan}, std::invalid_argument);
}

TEST(SaturatingAdd, stays_within_the_range_of_the_clock) {
    EXPECT_EQ(kunci::saturating_add(TimePoint{5ns}, 7ns), TimePoint{12ns});
    EXPECT_EQ(kunci::saturating_add(TimePoint{5ns}, Duration::max()), TimePoint::max());
    EXPECT_EQ(kunci::saturating_add(TimePoint{-5ns}, Duration::min()), TimePoint::min());
}

TEST(SaturatingUntil, is_never_negative_and_never_wraps) {
    EXPECT_EQ(kunci::saturating_until(TimePoint{5ns}, TimePoint{12ns}), 7ns);
    EXPECT_EQ(kunci::saturating_until(TimePoint{12ns}, TimePoint{5ns}), 0ns);
    EXPECT_EQ(kunci::saturating_until(TimePoint::min(), TimePoint::max()), Duration::max());
    EXPECT_EQ(kunci::saturating_until(TimePoint::max(), TimePoint::min()), 0ns);
}

TEST(SteadyClock, never_goes_back) {
    auto last = kunci::SteadyClock::now();
    for (int i = 0; i < 1000; ++i) {
        const auto now = kunci::SteadyClock::now();
        ASSERT_GE(now, last);
        last = now;
    }
}

}  // namespace
