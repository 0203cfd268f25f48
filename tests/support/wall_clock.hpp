#pragma once

#include "redis_server.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace kunci::test {

/// A wall clock that can be set, for processes that are started with `environment()`. Their other clocks go on
/// undisturbed. Thread-safe.
class WallClock {
  public:
    WallClock() {
        const int fd = ::open(path().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0 || ::ftruncate(fd, sizeof(Offset)) != 0) throw std::runtime_error("wall clock: " + path());
        void* page = ::mmap(nullptr, sizeof(Offset), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        ::close(fd);
        if (page == MAP_FAILED) throw std::runtime_error("wall clock: mmap");
        offset_ = static_cast<Offset*>(page);
    }
    WallClock(const WallClock&) = delete;
    WallClock& operator=(const WallClock&) = delete;
    ~WallClock() { ::munmap(offset_, sizeof(Offset)); }

    /// Sets it forward, or back.
    void step(std::chrono::nanoseconds by) { *offset_ += by.count(); }

    [[nodiscard]] std::vector<std::string> environment() const {
        return {std::string{"LD_PRELOAD="} + KUNCI_WALL_CLOCK_SHIM, "KUNCI_WALL_CLOCK=" + path(),
                "ASAN_OPTIONS=verify_asan_link_order=0"};
    }

  private:
    using Offset = std::atomic<std::int64_t>;

    [[nodiscard]] std::string path() const { return directory_.file("offset"); }

    detail::TemporaryDirectory directory_;
    Offset* offset_;
};

}  // namespace kunci::test
