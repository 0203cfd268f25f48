// A lock that nobody keeps is released at once, which is never what was meant.
// EXPECT: ignoring return value

#include <kunci/kunci.hpp>
#include <kunci/testing.hpp>

int main() {
    kunci::testing::ManualClock clock;
    kunci::testing::InMemoryServer server{clock};
    kunci::DistributedLock locks{server.connect(), clock};
#ifdef REJECT
    locks.try_lock("daily-notif");
#else
    return locks.try_lock("daily-notif").has_value() ? 0 : 1;
#endif
}
