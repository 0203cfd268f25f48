// Releasing by the key alone would touch the lock of whoever holds it now.
// EXPECT: no matching function|no matching member function|cannot convert|could not convert

#include <kunci/kunci.hpp>
#include <kunci/testing.hpp>

#include <string>

int main() {
    kunci::testing::ManualClock clock;
    kunci::testing::InMemoryServer server{clock};
    kunci::DistributedLock locks{server.connect(), clock};
    const std::string key = "daily-notif";
#ifdef REJECT
    return locks.release(key) ? 0 : 1;
#else
    return locks.release(locks.acquire(key)) ? 0 : 1;
#endif
}
