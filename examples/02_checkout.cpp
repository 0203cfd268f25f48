// One checkout per user at a time; a second click waits for two seconds at the most.
#include <kunci/hiredis.hpp>
#include <kunci/kunci.hpp>

#include <chrono>
#include <cstdio>
#include <string>

using namespace std::chrono_literals;

namespace {

// [checkout]
std::string checkout(kunci::LockOperations& locks, int user) {
    try {
        auto guard = locks.lock("checkout:user:" + std::to_string(user), {.ttl = 10s, .wait_timeout = 2s});
        return "checked out";
    } catch (const kunci::LockAcquisitionFailed& busy) {
        return "already being processed, " + std::to_string(busy.attempts()) + " tries";
    }  // any other kunci::Error: Redis is in trouble, which is not the same as "busy"
}
// [/checkout]

}  // namespace

int main(int argc, char** argv) {
    kunci::DistributedLock locks{kunci::HiredisConnection{argc > 1 ? argv[1] : "redis://127.0.0.1:6379/0"}};
    auto first_click = locks.lock("checkout:user:42", {.ttl = 10s});
    const std::string second_click = checkout(locks, 42);
    const std::string other_user = checkout(locks, 43);
    if (!first_click.release()) return 1;
    const std::string third_click = checkout(locks, 42);
    std::printf("second click: %s\nother user: %s\nthird click: %s\n", second_click.c_str(),
                other_user.c_str(), third_click.c_str());
    return second_click.starts_with("already") && other_user == "checked out" && third_click == "checked out"
               ? 0
               : 1;
}
