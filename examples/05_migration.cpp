// Every instance of a service wants to migrate the database when it starts. One does, the others wait for it.
#include <kunci/hiredis.hpp>
#include <kunci/kunci.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

namespace {

/// The version of the schema; every step of the migration leads to the next one.
struct Database {
    void apply_step(int step) { version = step; }
    std::atomic<int> version = 0;
};

// [migration]
int migrate(kunci::LockOperations& locks, Database& database, int target) {
    auto guard = locks.lock("migration", {.ttl = 30s, .wait_timeout = 5min, .retry_interval = 10ms});
    int steps = 0;
    for (int step = database.version + 1; step <= target; ++step, ++steps) {
        if (!guard.held()) throw std::runtime_error("lost the lock; another instance goes on from here");
        database.apply_step(step);
    }
    return steps;  // 0: another instance has done it
}
// [/migration]

}  // namespace

int main(int argc, char** argv) {
    const char* url = argc > 1 ? argv[1] : "redis://127.0.0.1:6379/0";
    Database database;
    std::atomic<int> migrated = 0;
    std::atomic<int> found_done = 0;
    {
        std::vector<std::jthread> instances;
        for (int i = 0; i < 4; ++i) {
            instances.emplace_back([&] {
                kunci::DistributedLock locks{kunci::HiredisConnection{url}};
                ++(migrate(locks, database, 3) == 3 ? migrated : found_done);
            });
        }
    }
    std::printf("%d instance migrated to version %d, %d found it done\n", migrated.load(),
                database.version.load(), found_done.load());
    return migrated == 1 && found_done == 3 && database.version == 3 ? 0 : 1;
}
