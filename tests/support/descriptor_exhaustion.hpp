#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace kunci::test {

/// Opens descriptors and closes them again. One object at a time, since the limit is the process's.
class ManyDescriptors {
  public:
    /// `count` more, all of which may be opened: new ones then have numbers of at least `count`.
    explicit ManyDescriptors(std::size_t count) {
        raise_limit();
        while (fds_.size() < count && open_one()) {
        }
    }
    ManyDescriptors(const ManyDescriptors&) = delete;
    ManyDescriptors& operator=(const ManyDescriptors&) = delete;
    ~ManyDescriptors() {
        for (const int fd : fds_) ::close(fd);
        ::setrlimit(RLIMIT_NOFILE, &before_);
    }

    [[nodiscard]] std::size_t count() const { return fds_.size(); }

  protected:
    /// None can be opened any more.
    ManyDescriptors() {
        ::getrlimit(RLIMIT_NOFILE, &before_);
        rlimit few = before_;
        few.rlim_cur = std::min<rlim_t>(before_.rlim_cur, 256);
        ::setrlimit(RLIMIT_NOFILE, &few);
        while (open_one()) {
        }
    }

  private:
    void raise_limit() {
        ::getrlimit(RLIMIT_NOFILE, &before_);
        rlimit most = before_;
        most.rlim_cur = most.rlim_max;
        ::setrlimit(RLIMIT_NOFILE, &most);
    }

    bool open_one() {
        const int fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (fd >= 0) fds_.push_back(fd);
        return fd >= 0;
    }

    rlimit before_{};
    std::vector<int> fds_;
};

/// Whether a process can live without descriptors: UndefinedBehaviorSanitizer asks the kernel through a pipe
/// whether memory may be read, and takes every object for a broken one if it can open none.
#ifdef __SANITIZE_ADDRESS__  // is used together with it
inline constexpr bool descriptors_can_run_out = false;
#else
inline constexpr bool descriptors_can_run_out = true;
#endif

/// No further descriptor can be opened in this process.
struct NoDescriptorsLeft : ManyDescriptors {
    NoDescriptorsLeft() = default;
};

}  // namespace kunci::test
