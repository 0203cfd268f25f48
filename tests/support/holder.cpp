// A process that holds a lock until it is killed: holder URL KEY TTL_MS. Exits with 3 if it does not get it.
#include <kunci/hiredis.hpp>
#include <kunci/kunci.hpp>

#include <unistd.h>

#include <chrono>
#include <cstdlib>

int main(int argc, char** argv) {
    if (argc != 4) return 2;
    kunci::DistributedLock locks{kunci::HiredisConnection{argv[1]}};
    const auto guard = locks.try_lock(argv[2], {.ttl = std::chrono::milliseconds{std::atoi(argv[3])}});
    if (!guard) return 3;
    for (;;) ::pause();
}
