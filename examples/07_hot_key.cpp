// A key that everybody wants, split over 16 locks: only those that share a stripe wait for each other.
#include <kunci/hiredis.hpp>
#include <kunci/kunci.hpp>

#include <chrono>
#include <cstdio>
#include <string>

using namespace std::chrono_literals;

int main(int argc, char** argv) {
    kunci::DistributedLock locks{kunci::HiredisConnection{argc > 1 ? argv[1] : "redis://127.0.0.1:6379/0"}};
    // [striped]
    auto guard =
        locks.lock(kunci::striped_key("seat", 37, 16), {.ttl = 10s});  // "seat:5", since 37 % 16 == 5
    // [/striped]
    const bool same_stripe = locks.try_lock(kunci::striped_key("seat", 53, 16)).has_value();
    const bool other_stripe = locks.try_lock(kunci::striped_key("seat", 38, 16)).has_value();
    std::printf("%s is taken; seat 53 gets in: %d, seat 38 gets in: %d\n",
                std::string{guard.token().key()}.c_str(), same_stripe, other_stripe);
    return !same_stripe && other_stripe ? 0 : 1;
}
