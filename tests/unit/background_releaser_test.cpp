#include <kunci/driver/background_releaser.hpp>
#include <kunci/testing.hpp>

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;
using kunci::TimePoint;
using kunci::driver::BackgroundReleaser;
using kunci::driver::SingleNode;
using kunci::protocol::Lease;

class BackgroundReleaserTest : public testing::Test {
  protected:
    /// A lease that was acquired, as far as it knows.
    Lease acquired(const std::string& key) {
        Lease lease{kunci::LockKey{"", key}, "token", {.ttl = 30s, .auto_refresh = false}, 1};
        lease.begin(TimePoint::max(), false);
        const auto request = lease.next_request(clock_.now());
        server_.command({"SET", key, "token", "PX", "30000"});
        lease.on_outcome(0, request->id, kunci::Reply::status("OK"), clock_.now());
        return lease;
    }

    [[nodiscard]] bool exists(const std::string& key) const {
        return server_.command({"EXISTS", key}).integer() == 1;
    }

    kunci::testing::ManualClock clock_;
    kunci::testing::InMemoryServer server_{clock_};
    kunci::testing::FaultPlan faults_;
    using Faulty = kunci::testing::FaultyConnection<kunci::testing::InMemoryConnection>;
    std::shared_ptr<kunci::driver::Transport> transport_ =
        std::make_shared<SingleNode<Faulty>>(Faulty{server_.connect(), faults_});
};

TEST_F(BackgroundReleaserTest, releases_what_it_is_given) {
    BackgroundReleaser releaser{transport_, clock_, 1s};
    releaser.take(acquired("one"));
    releaser.take(acquired("two"));
    while (exists("one") || exists("two")) std::this_thread::yield();
}

TEST_F(BackgroundReleaserTest, starts_again_after_it_had_nothing_to_do) {
    BackgroundReleaser releaser{transport_, clock_, 1s};
    for (int i = 0; i < 20; ++i) {
        releaser.take(acquired("k"));
        while (exists("k")) std::this_thread::yield();
    }
}

TEST_F(BackgroundReleaserTest, keeps_trying_and_then_leaves_it_to_the_ttl) {
    BackgroundReleaser releaser{transport_, clock_, 1s};
    faults_.cut_link();
    const TimePoint start = clock_.now();
    releaser.take(acquired("k"));
    for (; clock_.now() < start + 10s; clock_.advance(1s)) ASSERT_TRUE(clock_.await_sleepers(1));
    ASSERT_TRUE(exists("k"));
    faults_.mend_link();
    while (exists("k")) {
        // Only when it sleeps, so that time does not run away from a slow thread.
        if (clock_.sleepers() >= 1) clock_.advance(10ms);
        std::this_thread::yield();
    }
    EXPECT_LT(clock_.now(), start + 25s) << "it must be the release that ended it, not the TTL";

    faults_.cut_link();
    releaser.take(acquired("k"));
    while (clock_.await_sleepers(1, 50ms)) clock_.advance(1s);
    EXPECT_LE(clock_.now(), start + 45s) << "it must not go on for ever";
}

TEST_F(BackgroundReleaserTest, gives_everything_one_try_when_it_is_destroyed) {
    {
        BackgroundReleaser releaser{transport_, clock_, 1s};
        releaser.take(acquired("one"));
        releaser.take(acquired("two"));
    }
    EXPECT_FALSE(exists("one"));
    EXPECT_FALSE(exists("two"));
}

TEST_F(BackgroundReleaserTest, is_destroyed_at_once_though_the_server_is_away) {
    faults_.cut_link();
    BackgroundReleaser releaser{transport_, clock_, 1s};
    releaser.take(acquired("k"));
}

/// Whether a thread of this process sleeps in the kernel; then it waits for something.
bool sleeps(pid_t thread) {
    std::ifstream stat{"/proc/self/task/" + std::to_string(thread) + "/stat"};
    std::string text{std::istreambuf_iterator<char>{stat}, {}};
    return text.substr(text.rfind(')') + 2, 1) == "S";
}

/// A server that hangs, but not before the test's own thread waits in the destructor.
class HangsDuringDestruction {
  public:
    HangsDuringDestruction(kunci::testing::ManualClock& clock, const std::atomic<bool>& destroying)
        : clock_{&clock}, destroying_{&destroying} {}

    kunci::Outcome execute(const kunci::Command&, kunci::Deadline deadline) {
        while (!*destroying_ || !sleeps(::getpid())) std::this_thread::yield();
        clock_->advance_to(deadline);
        return kunci::Fault::maybe_executed("no answer before the deadline");
    }

  private:
    kunci::testing::ManualClock* clock_;
    const std::atomic<bool>* destroying_;
};

TEST_F(BackgroundReleaserTest, takes_one_timeout_for_all_of_them_when_it_is_destroyed_and_the_server_hangs) {
    std::atomic<bool> destroying = false;
    auto transport =
        std::make_shared<SingleNode<HangsDuringDestruction>>(HangsDuringDestruction{clock_, destroying});
    std::vector<Lease> leases;
    for (int i = 0; i < 20; ++i) leases.push_back(acquired(std::to_string(i)));
    const TimePoint start = clock_.now();
    {
        BackgroundReleaser releaser{transport, clock_, 1s};
        for (auto& lease : leases) releaser.take(std::move(lease));
        destroying = true;
    }
    EXPECT_LE(clock_.now(), start + 2s);  // what was under way, and one second at the most for all the others
}

TEST_F(BackgroundReleaserTest, leaves_the_next_owner_alone) {
    BackgroundReleaser releaser{transport_, clock_, 1s};
    Lease lease = acquired("k");
    server_.command({"SET", "k", "next owner"});
    releaser.take(std::move(lease));
    while (server_.command_count() < 2) std::this_thread::yield();  // EVALSHA, then EVAL
    EXPECT_EQ(server_.command({"GET", "k"}).text(), "next owner");
}

}  // namespace
