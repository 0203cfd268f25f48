// A transfer needs two accounts. std::scoped_lock takes both, in whatever order, without a deadlock.
#include <kunci/hiredis.hpp>
#include <kunci/kunci.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <thread>

using namespace std::chrono_literals;

namespace {

// [transfer]
void transfer(kunci::DistributedMutex& from, kunci::DistributedMutex& to, std::atomic<int>& source,
              std::atomic<int>& target, int amount) {
    const std::scoped_lock both{from, to};
    source = source - amount;
    target = target + amount;
}
// [/transfer]

}  // namespace

int main(int argc, char** argv) {
    const char* url = argc > 1 ? argv[1] : "redis://127.0.0.1:6379/0";
    std::atomic<int> alice = 1000;
    std::atomic<int> bob = 1000;
    const auto move_money = [&](bool to_bob) {
        kunci::DistributedLock locks{kunci::HiredisConnection{url}};
        kunci::DistributedMutex a{locks, "account:alice", {.ttl = 5s, .retry_interval = 2ms}};
        kunci::DistributedMutex b{locks, "account:bob", {.ttl = 5s, .retry_interval = 2ms}};
        for (int i = 0; i < 20; ++i) {
            if (to_bob) {
                transfer(a, b, alice, bob, 3);
            } else {
                transfer(b, a, bob, alice, 1);
            }
        }
    };
    {
        const std::jthread one{move_money, true};
        const std::jthread other{move_money, false};
    }
    std::printf("alice %d, bob %d\n", alice.load(), bob.load());
    return alice == 960 && bob == 1040 ? 0 : 1;
}
