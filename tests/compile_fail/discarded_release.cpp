// Whether the lock was still ours at its release is an answer that somebody should look at.
// EXPECT: ignoring return value

#include <kunci/kunci.hpp>
#include <kunci/testing.hpp>

int main() {
    kunci::testing::ManualClock clock;
    kunci::testing::InMemoryServer server{clock};
    kunci::DistributedLock locks{server.connect(), clock};
    const kunci::LockToken token = locks.acquire("daily-notif");
#ifdef REJECT
    locks.release(token);
#else
    return locks.release(token) ? 0 : 1;
#endif
}
