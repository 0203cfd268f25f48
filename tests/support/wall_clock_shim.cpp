// Preloaded into a process: shifts its wall clock by what another process writes into a file, and slows its name
// look-ups down. Clocks that nobody can set are left alone.
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>

namespace {

using Offset = std::atomic<std::int64_t>;

/// In nanoseconds; lives in the file that KUNCI_WALL_CLOCK names.
std::int64_t offset() {
    static const Offset* const shared = []() -> const Offset* {
        const char* path = std::getenv("KUNCI_WALL_CLOCK");
        const int fd = path != nullptr ? ::open(path, O_RDONLY | O_CLOEXEC) : -1;
        if (fd < 0) return nullptr;
        void* page = ::mmap(nullptr, sizeof(Offset), PROT_READ, MAP_SHARED, fd, 0);
        ::close(fd);
        return page != MAP_FAILED ? static_cast<const Offset*>(page) : nullptr;
    }();
    return shared != nullptr ? shared->load() : 0;
}

template <typename Function>
Function* real(const char* name) {
    return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

timespec shifted_now() {
    static auto* const clock = real<int(clockid_t, timespec*)>("clock_gettime");
    timespec now{};
    clock(CLOCK_REALTIME, &now);
    constexpr std::int64_t second = 1'000'000'000;
    const std::int64_t total = now.tv_sec * second + now.tv_nsec + offset();
    return {static_cast<time_t>(total / second), static_cast<long>(total % second)};
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t id, timespec* result) {
    static auto* const clock = real<int(clockid_t, timespec*)>("clock_gettime");
    if (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE) return clock(id, result);
    *result = shifted_now();
    return 0;
}

int gettimeofday(timeval* result, void* /*timezone*/) {
    const timespec now = shifted_now();
    *result = {now.tv_sec, now.tv_nsec / 1000};
    return 0;
}

time_t time(time_t* result) {
    const time_t now = shifted_now().tv_sec;
    if (result != nullptr) *result = now;
    return now;
}

int getaddrinfo(const char* node, const char* service, const addrinfo* hints, addrinfo** result) {
    static auto* const look_up =
        real<int(const char*, const char*, const addrinfo*, addrinfo**)>("getaddrinfo");
    const char* slow = std::getenv("KUNCI_SLOW_NAMES");
    const bool by_name = hints == nullptr || (hints->ai_flags & AI_NUMERICHOST) == 0;
    if (slow != nullptr && by_name) ::usleep(static_cast<useconds_t>(std::atoi(slow)) * 1000);
    return look_up(node, service, hints, result);
}

}  // extern "C"
