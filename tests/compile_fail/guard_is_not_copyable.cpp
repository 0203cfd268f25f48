// Two guards of one tenure would release it twice; a guard is moved.
// EXPECT: deleted.*LockGuard|LockGuard.*deleted

#include <kunci/kunci.hpp>
#include <kunci/testing.hpp>

#include <utility>

int main() {
    kunci::testing::ManualClock clock;
    kunci::testing::InMemoryServer server{clock};
    kunci::DistributedLock locks{server.connect(), clock};
    auto guard = locks.lock("daily-notif");
#ifdef REJECT
    auto second = guard;
#else
    auto second = std::move(guard);
#endif
    return second.held() ? 0 : 1;
}
