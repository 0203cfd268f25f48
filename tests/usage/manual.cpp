// The seeds' demonstration: A locks, B is refused, B cannot release A's lock, A releases, a second release is refused.
#include <kunci/hiredis.hpp>
#include <kunci/kunci.hpp>

#include <chrono>
#include <cstdio>

using namespace std::chrono_literals;

int main(int argc, char** argv) {
    const char* url = argc > 1 ? argv[1] : "redis://127.0.0.1:6379/0";
    kunci::DistributedLock a{kunci::HiredisConnection{url}};
    kunci::DistributedLock b{kunci::HiredisConnection{url}};

    kunci::LockToken mine =
        a.acquire("daily-recap", {.ttl = 10s});  // throws LockAcquisitionFailed when it is taken
    std::printf("A locks: %d, key %s\n", 1, std::string(mine.key()).c_str());  // key lock:daily-recap
    std::printf("B locks: %d\n", b.try_acquire("daily-recap", {.ttl = 10s}).has_value());

    kunci::LockToken forged{mine.key(), "token-77"};
    std::printf("B releases: %d\n", b.release(forged));
    std::printf("B refreshes: %d\n", b.refresh(forged, 30s));
    std::printf("A refreshes: %d\n", a.refresh(mine, 30s));
    std::printf("A releases: %d\n", a.release(mine));
    std::printf("A releases again: %d\n", a.release(mine));
}
