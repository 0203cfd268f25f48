// A notification that must go out once: the lock keeps two senders apart, the record keeps the second from
// sending again when its turn comes.
#include <kunci/hiredis.hpp>
#include <kunci/kunci.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

namespace {

/// What has been sent already; in life, a table.
class Outbox {
  public:
    [[nodiscard]] bool has(const std::string& id) const {
        const std::lock_guard lock{mutex_};
        return sent_.contains(id);
    }
    void record(const std::string& id) {
        const std::lock_guard lock{mutex_};
        sent_.insert(id);
    }

  private:
    mutable std::mutex mutex_;
    std::set<std::string> sent_;
};

// [send_once]
bool send_once(kunci::LockOperations& locks, Outbox& outbox, const std::string& id) {
    auto guard = locks.lock("notify:" + id, {.ttl = 10s, .wait_timeout = 20s, .retry_interval = 5ms});
    if (outbox.has(id)) return false;  // a lock alone would only make the second one send later
    outbox.record(id);                 // before sending: rather none than two when we die in between
    return true;                       // send it here
}
// [/send_once]

}  // namespace

int main(int argc, char** argv) {
    const char* url = argc > 1 ? argv[1] : "redis://127.0.0.1:6379/0";
    Outbox outbox;
    std::atomic<int> sent = 0;
    {
        std::vector<std::jthread> workers;
        for (int i = 0; i < 5; ++i) {
            workers.emplace_back([&] {
                kunci::DistributedLock locks{kunci::HiredisConnection{url}};
                if (send_once(locks, outbox, "order-1001")) ++sent;
            });
        }
    }
    std::printf("5 workers, %d message\n", sent.load());
    return sent == 1 ? 0 : 1;
}
