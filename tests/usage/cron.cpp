// Seed use case 1: a cron job fires on several servers; exactly one runs it, the others skip at once.
#include <kunci/hiredis.hpp>
#include <kunci/kunci.hpp>

#include <chrono>
#include <cstdio>
#include <thread>

using namespace std::chrono_literals;

int main(int argc, char** argv) {
    const char* url = argc > 1 ? argv[1] : "redis://127.0.0.1:6379/0";
    kunci::DistributedLock locks{kunci::HiredisConnection{url}};

    if (auto guard = locks.try_lock("daily-notif", {.ttl = 2s})) {
        // The refresher keeps the lock alive although the job outlives the TTL.
        for (int i = 0; i < 50 && !guard->stop_token().stop_requested(); ++i)
            std::this_thread::sleep_for(100ms);
        std::puts(guard->held() ? "ran" : "lost");
    } else {
        std::puts("skipped");
    }
}
