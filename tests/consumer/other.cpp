#include "other.hpp"

#include <kunci/kunci.hpp>
#include <kunci/testing.hpp>

#include <chrono>

#ifdef CONSUMER_WITH_HIREDIS
#include <kunci/hiredis.hpp>
#endif

bool takes_the_lock(kunci::testing::InMemoryServer& server, kunci::testing::ManualClock& clock) {
    kunci::DistributedLock locks{server.connect(), clock};
    return locks.try_acquire("daily-notif", {.ttl = std::chrono::seconds{30}}).has_value();
}
