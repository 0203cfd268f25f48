#include <kunci/driver/loss_timer.hpp>
#include <kunci/testing/manual_clock.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;
using kunci::TimePoint;
using kunci::driver::LossTimer;
using kunci::testing::ManualClock;

/// Something that ends at an instant which the test may move.
class Ends final : public LossTimer::Watched {
  public:
    explicit Ends(TimePoint end) : at{end} {}

    std::optional<TimePoint> look(TimePoint now) override {
        ++looks;
        if (during_look) std::exchange(during_look, nullptr)();
        if (now < at.load()) return at.load();
        ++told;
        return std::nullopt;
    }

    void await_told() const {
        while (told == 0) std::this_thread::yield();
    }

    std::atomic<TimePoint> at;
    std::atomic<int> looks = 0;
    std::atomic<int> told = 0;
    std::function<void()> during_look;  // set before it is watched
};

TEST(LossTimer, tells_when_the_time_has_come_and_only_once) {
    ManualClock clock;
    LossTimer timer{clock};
    const auto ends = std::make_shared<Ends>(clock.now() + 1s);
    timer.watch(ends, clock.now() + 1s);
    ASSERT_TRUE(clock.await_sleepers(1));
    clock.advance(1s - 1ns);
    EXPECT_EQ(ends->told, 0);
    clock.advance(1ns);
    ends->await_told();
    ASSERT_TRUE(clock.await_sleepers(1));
    clock.advance(1h);
    EXPECT_EQ(ends->told, 1);
}

TEST(LossTimer, tells_in_order_of_time_not_of_registration) {
    ManualClock clock;
    LossTimer timer{clock};
    const auto late = std::make_shared<Ends>(clock.now() + 3s);
    const auto early = std::make_shared<Ends>(clock.now() + 1s);
    timer.watch(late, late->at.load());
    ASSERT_TRUE(clock.await_sleepers(1));
    timer.watch(early, early->at.load());
    while (clock.sleepers() != 1) std::this_thread::yield();
    clock.advance(1s);
    early->await_told();
    EXPECT_EQ(late->told, 0);
    ASSERT_TRUE(clock.await_sleepers(1));
    clock.advance(2s);
    late->await_told();
}

TEST(LossTimer, follows_an_end_that_has_moved) {
    ManualClock clock;
    LossTimer timer{clock};
    const auto ends = std::make_shared<Ends>(clock.now() + 1s);
    timer.watch(ends, ends->at.load());
    ASSERT_TRUE(clock.await_sleepers(1));
    ends->at = clock.now() + 5s;  // refreshed; the timer is not told
    clock.advance(1s);
    ASSERT_TRUE(clock.await_sleepers(1));
    EXPECT_EQ(ends->looks, 1);
    EXPECT_EQ(ends->told, 0);
    clock.advance(4s);
    ends->await_told();
    EXPECT_EQ(ends->looks, 2);
}

TEST(LossTimer, looks_at_once_when_asked_to) {
    ManualClock clock;
    LossTimer timer{clock};
    const auto ends = std::make_shared<Ends>(clock.now() + 1h);
    timer.watch(ends, ends->at.load());
    ends->at = TimePoint::min();
    timer.look_now(ends);
    ends->await_told();
}

TEST(LossTimer, does_not_miss_what_changes_during_a_look) {
    ManualClock clock;
    LossTimer timer{clock};
    const auto ends = std::make_shared<Ends>(clock.now() + 1h);
    // The first look sees the old end, while the new one is being told.
    ends->during_look = [&] { timer.look_now(ends); };
    timer.watch(ends, clock.now());
    while (ends->looks < 2) std::this_thread::yield();
    EXPECT_EQ(ends->told, 0);
}

TEST(LossTimer, forgets_what_it_need_not_watch_any_more) {
    ManualClock clock;
    LossTimer timer{clock};
    auto ends = std::make_shared<Ends>(clock.now() + 1s);
    const auto other = std::make_shared<Ends>(clock.now() + 1s);
    timer.watch(ends, ends->at.load());
    timer.watch(other, other->at.load());
    timer.unwatch(*ends);
    const std::weak_ptr<Ends> weak = ends;
    clock.advance(1s);
    other->await_told();
    EXPECT_EQ(ends->looks, 0);
    ends.reset();
    EXPECT_TRUE(weak.expired()) << "the timer must not keep it";
    timer.unwatch(*other);  // that it was told already does no harm
}

TEST(LossTimer, does_not_watch_again_what_was_given_up_during_a_look) {
    ManualClock clock;
    LossTimer timer{clock};
    auto ends = std::make_shared<Ends>(clock.now() + 1h);
    std::atomic<bool> given_up = false;
    ends->during_look = [&] {
        timer.unwatch(*ends);
        given_up = true;
    };
    const std::weak_ptr<Ends> weak = ends;
    timer.watch(ends, clock.now());
    while (!given_up) std::this_thread::yield();
    ends.reset();
    while (!weak.expired()) std::this_thread::yield();
}

TEST(LossTimer, lets_one_wait_for_the_end_of_a_look) {
    ManualClock clock;
    LossTimer timer{clock};
    const auto ends = std::make_shared<Ends>(clock.now() + 1h);
    std::atomic<bool> looking = false;
    std::atomic<bool> go_on = false;
    std::atomic<bool> looked = false;
    ends->during_look = [&] {
        timer.await_look(*ends);  // from the look itself it returns at once
        looking = true;
        while (!go_on) std::this_thread::yield();
        looked = true;
    };
    timer.watch(ends, clock.now());
    while (!looking) std::this_thread::yield();
    timer.unwatch(*ends);
    std::jthread waiter{[&] {
        timer.await_look(*ends);
        EXPECT_TRUE(looked);
    }};
    go_on = true;
}

TEST(LossTimer, may_be_destroyed_while_it_watches) {
    ManualClock clock;
    std::vector<std::shared_ptr<Ends>> all;
    {
        LossTimer timer{clock};
        for (int i = 0; i < 100; ++i) {
            all.push_back(std::make_shared<Ends>(clock.now() + 1s));
            timer.watch(all.back(), all.back()->at.load());
        }
    }
    for (const auto& each : all) EXPECT_EQ(each.use_count(), 1);
}

TEST(LossTimer, may_be_destroyed_by_what_it_watches) {
    ManualClock clock;
    auto timer = std::make_unique<LossTimer>(clock);
    const auto ends = std::make_shared<Ends>(clock.now());
    std::atomic<bool> watched = false;
    std::atomic<bool> destroyed = false;
    ends->during_look = [&] {
        while (!watched) std::this_thread::yield();
        timer.reset();
        destroyed = true;
    };
    timer->watch(ends, clock.now());
    watched = true;
    while (!destroyed) std::this_thread::yield();
    while (ends.use_count() != 1) std::this_thread::yield();
}

}  // namespace
