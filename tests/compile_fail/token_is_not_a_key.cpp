// A token proves a tenure, a key names a lock; one is never taken for the other.
// EXPECT: no matching function|no matching member function|cannot convert|could not convert

#include <kunci/kunci.hpp>
#include <kunci/testing.hpp>

int main() {
    kunci::testing::ManualClock clock;
    kunci::testing::InMemoryServer server{clock};
    kunci::DistributedLock locks{server.connect(), clock};
    const kunci::LockToken token = locks.acquire("daily-notif");
#ifdef REJECT
    return locks.try_acquire(token).has_value() ? 0 : 1;
#else
    return locks.try_acquire("daily-recap").has_value() ? 0 : 1;
#endif
}
