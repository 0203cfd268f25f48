// A program of somebody who uses kunci, in two units that both include all of it. Needs no server.

#include <kunci/kunci.hpp>
#include <kunci/testing.hpp>

#include "other.hpp"

#include <chrono>
#include <cstdio>

#ifdef CONSUMER_WITH_HIREDIS
#include <kunci/hiredis.hpp>
#endif

using namespace std::chrono_literals;

namespace {

int failed(const char* what) {
    std::printf("failed: %s\n", what);
    return 1;
}

}  // namespace

int main() {
    kunci::testing::ManualClock clock;
    kunci::testing::InMemoryServer server{clock};
    kunci::DistributedLock locks{server.connect(), clock};

    auto mine = locks.try_acquire("daily-notif", {.ttl = 30s});
    if (!mine) return failed("the lock is free");
    if (takes_the_lock(server, clock)) return failed("the lock is taken");
    clock.advance(31s);
    if (!takes_the_lock(server, clock)) return failed("the lock has expired");
    if (locks.release(*mine)) return failed("somebody else's lock stays");

#ifdef CONSUMER_WITH_HIREDIS
    // It connects on first use, so no server is missed here.
    kunci::DistributedLock real{kunci::HiredisConnection{"redis://127.0.0.1:1/0"}};
#endif
    std::puts("consumed");
}
