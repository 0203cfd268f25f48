// Read, compute, write: a stock that many processes change, and none of their changes may get lost.
#include <kunci/hiredis.hpp>
#include <kunci/kunci.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

namespace {

/// A database that knows no transactions. Atomic, so that only the lock makes the difference.
struct Warehouse {
    [[nodiscard]] int read() const { return pieces; }
    void write(int value) { pieces = value; }
    std::atomic<int> pieces;
};

// [stock]
bool take_one(kunci::LockOperations& locks, Warehouse& warehouse) {
    auto guard = locks.lock("stock:7", {.ttl = 5s, .wait_timeout = 30s, .retry_interval = 2ms});
    const int pieces = warehouse.read();
    if (pieces == 0 || !guard.held()) return false;
    warehouse.write(pieces - 1);
    return true;
}
// [/stock]

}  // namespace

int main(int argc, char** argv) {
    const char* url = argc > 1 ? argv[1] : "redis://127.0.0.1:6379/0";
    constexpr int stock = 40;
    Warehouse warehouse{stock};
    std::atomic<int> sold = 0;
    {
        std::vector<std::jthread> shops;
        for (int i = 0; i < 4; ++i) {
            shops.emplace_back([&] {
                kunci::DistributedLock locks{kunci::HiredisConnection{url}};
                while (take_one(locks, warehouse)) ++sold;
            });
        }
    }
    std::printf("%d of %d sold, %d left\n", sold.load(), stock, warehouse.read());
    return sold == stock && warehouse.read() == 0 ? 0 : 1;
}
