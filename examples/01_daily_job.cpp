// A job is fired on three servers at once; exactly one runs it, the others skip at once.
// [hello]
#include <kunci/hiredis.hpp>
#include <kunci/kunci.hpp>

using namespace std::chrono_literals;

void send_notifications(
    const std::stop_token& lost);  // yours: hours of work, which end early when the lock is lost

bool daily_job(const char* url) {
    kunci::DistributedLock locks{kunci::HiredisConnection{url}};  // "redis://host:6379/0"
    auto guard = locks.try_lock("daily-notif", {.ttl = 30s});
    if (!guard) return false;                 // another server runs it
    send_notifications(guard->stop_token());  // the lock is kept alive in the background
    return guard->held();
}  // released here, also by an exception
// [/hello]

#include <atomic>
#include <chrono>
#include <cstdio>
#include <latch>
#include <stop_token>
#include <thread>
#include <vector>

namespace {

// Keeps the three servers of this example together, so that none comes when the job is over already.
std::latch everybody_tried{3};

}  // namespace

void send_notifications(const std::stop_token& lost) {
    everybody_tried.arrive_and_wait();
    for (int i = 0; i < 100 && !lost.stop_requested(); ++i) std::this_thread::yield();
}

int main(int argc, char** argv) {
    const char* url = argc > 1 ? argv[1] : "redis://127.0.0.1:6379/0";
    std::atomic<int> ran = 0;
    std::atomic<int> skipped = 0;
    {
        std::vector<std::jthread> servers;
        for (int i = 0; i < 3; ++i) {
            servers.emplace_back([&] {
                if (daily_job(url)) {
                    ++ran;
                } else {
                    ++skipped;
                    everybody_tried.count_down();
                }
            });
        }
    }
    std::printf("%d of 3 servers ran it, %d skipped it\n", ran.load(), skipped.load());
    return ran == 1 && skipped == 2 ? 0 : 1;
}
