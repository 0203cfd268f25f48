// One of several workers that start the same job at the same moment: one runs it, the others skip it.
// Usage: cron_worker <url> <name> <seconds of work>. See examples/run, which starts three of them.

#include <kunci/hiredis.hpp>
#include <kunci/kunci.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <stop_token>

using namespace std::chrono_literals;
using Seconds = std::chrono::duration<double>;

namespace {

/// Stands for a job of some length. Like a good job it ends early when the lock is lost.
void work(Seconds length, const std::stop_token& lost) {
    std::mutex mutex;
    std::condition_variable_any changed;
    std::unique_lock lock{mutex};
    changed.wait_for(lock, lost, length, [] { return false; });
}

int run(const char* url, const char* name, Seconds length) {
    kunci::DistributedLock locks{kunci::HiredisConnection{url}};

    auto guard = locks.try_lock("daily-notif", {.ttl = 2s});
    if (!guard) {
        std::printf("%s: skipped, somebody else holds the lock\n", name);
        return 0;
    }
    const auto start = std::chrono::steady_clock::now();
    work(length, guard->stop_token());
    const bool held = guard->held();
    const Seconds took = std::chrono::steady_clock::now() - start;
    std::printf("%s: %s daily-notif (held %.1f s)\n", name, held ? "ran" : "lost", took.count());
    return held && guard->release() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4) {
        std::fprintf(stderr, "usage: cron_worker <url> <name> <seconds of work>\n");
        return 2;
    }
    try {
        return run(argv[1], argv[2], Seconds{std::atof(argv[3])});
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s: %s\n", argv[2], error.what());
        return 1;
    }
}
