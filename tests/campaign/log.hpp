#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

// What the processes of a campaign write down: a file that all of them map, so that what a killed one has written
// is there. Instants are in nanoseconds of kunci's clock, which all processes of a machine share; 0: never.
namespace kunci::campaign {

inline constexpr std::size_t max_processes = 64;
inline constexpr std::size_t max_threads = 8;
inline constexpr std::size_t max_locks = 8;
inline constexpr std::size_t max_tenures = 400'000;

using Instant = std::atomic<std::int64_t>;

enum class Phase : int {
    run,     ///< Take locks at random.
    settle,  ///< No more faults: every thread takes every lock once.
    end,
};

enum class ReleaseResult : int {
    none,      ///< Never asked for, or its process ended before the answer.
    yes,       ///< Ours until then.
    no,        ///< Not ours any more.
    unknown,   ///< An error.
    scope_end  ///< By the destructor of the guard, which tells nothing.
};

/// One tenure, as its holder saw it.
struct TenureLog {
    std::atomic<bool> complete;  ///< Everything up to `entered` is there.
    int lock;
    int process;
    int thread;
    bool guarded;  ///< By a guard, which tells losses.
    std::array<char, 32> token;
    Instant called;
    Instant entered;      ///< The acquire had returned.
    Instant last_held;    ///< Read right before a question held() that was answered with yes.
    Instant valid_until;  /// Read right after that.
    Instant lost_at;      ///< The stop token fired.
    Instant valid_when_lost;
    std::atomic<int> losses;
    Instant release_begun;
    Instant release_ended;
    std::atomic<ReleaseResult> release_result;

    [[nodiscard]] std::string_view token_view() const { return {token.data(), token.size()}; }
};

/// The part of a file that all processes see.
struct Log {
    std::atomic<Phase> phase;
    std::atomic<std::size_t> tenures_taken;
    std::atomic<std::uint64_t> refused;
    std::atomic<std::uint64_t> failed;
    std::atomic<std::uint64_t> cancelled;
    std::array<std::array<std::array<std::atomic<int>, max_locks>, max_threads>, max_processes>
        turns_in_settling;
    std::array<TenureLog, max_tenures> tenures;

    /// A place for a new tenure, or null if there is no more room.
    [[nodiscard]] TenureLog* take() {
        const std::size_t index = tenures_taken.fetch_add(1);
        return index < max_tenures ? &tenures[index] : nullptr;
    }
    [[nodiscard]] std::size_t size() const { return std::min(tenures_taken.load(), max_tenures); }
};

/// A mapped log. Pages that nobody writes cost nothing.
class SharedLog {
  public:
    explicit SharedLog(const std::string& path) {
        const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0 || ::ftruncate(fd, sizeof(Log)) != 0) throw std::runtime_error("cannot make " + path);
        void* memory = ::mmap(nullptr, sizeof(Log), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        ::close(fd);
        if (memory == MAP_FAILED) throw std::runtime_error("cannot map " + path);
        log_ = static_cast<Log*>(memory);
    }
    SharedLog(const SharedLog&) = delete;
    SharedLog& operator=(const SharedLog&) = delete;
    ~SharedLog() { ::munmap(log_, sizeof(Log)); }

    [[nodiscard]] Log& operator*() const { return *log_; }
    [[nodiscard]] Log* operator->() const { return log_; }

  private:
    Log* log_;
};

}  // namespace kunci::campaign
