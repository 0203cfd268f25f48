#pragma once

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <fstream>
#include <memory>
#include <string>

namespace kunci::test {

namespace detail {

[[nodiscard]] inline std::size_t entries_of(const std::string& path) {
    std::size_t count = 0;
    const std::unique_ptr<DIR, int (*)(DIR*)> directory{::opendir(path.c_str()), ::closedir};
    while (const auto* entry = ::readdir(directory.get())) count += entry->d_name[0] != '.' ? 1U : 0U;
    return count;
}

[[nodiscard]] inline std::string proc(pid_t pid, const char* name) {
    return "/proc/" + std::to_string(pid) + "/" + name;
}

}  // namespace detail

[[nodiscard]] inline std::size_t threads_of(pid_t pid) {
    return detail::entries_of(detail::proc(pid, "task"));
}
[[nodiscard]] inline std::size_t threads_of_this_process() {
    return threads_of(::getpid());
}

[[nodiscard]] inline std::size_t open_descriptors(pid_t pid) {
    return detail::entries_of(detail::proc(pid, "fd"));
}
/// Of this process, without the one that the question takes.
[[nodiscard]] inline std::size_t open_descriptors() {
    return open_descriptors(::getpid()) - 1;
}

/// Whether what is freed can be used again: a sanitizer keeps it for a while.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool memory_is_returned = false;
#else
inline constexpr bool memory_is_returned = true;
#endif

[[nodiscard]] inline std::size_t resident_bytes(pid_t pid = ::getpid()) {
    std::ifstream statm{detail::proc(pid, "statm")};
    std::size_t total = 0;
    std::size_t resident = 0;
    statm >> total >> resident;
    return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

/// What the threads of this process have used so far, in user space and in the kernel.
[[nodiscard]] inline std::chrono::microseconds cpu_time() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    const auto of = [](const timeval& time) {
        return std::chrono::seconds{time.tv_sec} + std::chrono::microseconds{time.tv_usec};
    };
    return of(usage.ru_utime) + of(usage.ru_stime);
}

}  // namespace kunci::test
