#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <new>

namespace kunci::detail {

/// Remembers in which process it was made. In a forked child it says so: threads and connections of the parent
/// are not there. Asking costs one load, since the kernel itself tells the child apart: it gives it an empty
/// page where the parent has its number (madvise(2), MADV_WIPEONFORK). Thread-safe.
class ProcessMark {
  public:
    ProcessMark() : number_{current()} {}

    [[nodiscard]] bool is_of_this_process() const { return number_ == current(); }

  private:
    using Number = std::atomic<std::uint64_t>;

    [[nodiscard]] static std::uint64_t current() {
        static Number* const page = wiped_by_fork();
        if (page == nullptr) return static_cast<std::uint64_t>(::getpid());  // a kernel before 4.14
        const std::uint64_t number = page->load(std::memory_order_acquire);
        return number != 0 ? number : enter_process(*page);
    }

    /// Null where the kernel has no such pages. It lives as long as the process.
    [[nodiscard]] static Number* wiped_by_fork() {
        constexpr std::size_t size = sizeof(Number);  // the kernel rounds it up to a page
        void* page = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED) return nullptr;
        constexpr int wipe_on_fork = 18;  // MADV_WIPEONFORK, which old headers do not name
        if (::madvise(page, size, wipe_on_fork) != 0) {
            ::munmap(page, size);
            return nullptr;
        }
        return new (page) Number{0};
    }

    /// The first look in a new process: its number follows that of its parent.
    [[nodiscard]] static std::uint64_t enter_process(Number& page) {
        static Number last{0};
        std::uint64_t seen = 0;
        const std::uint64_t next = last.fetch_add(1) + 1;
        return page.compare_exchange_strong(seen, next) ? next : seen;
    }

    std::uint64_t number_;
};

}  // namespace kunci::detail
