#pragma once

#include <kunci/lock_guard.hpp>
#include <kunci/lock_operations.hpp>
#include <kunci/lock_options.hpp>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace kunci {

/// One distributed lock as a standard mutex: it meets the *TimedLockable* requirements, so that
/// `std::scoped_lock`, `std::unique_lock` and their like work on it, also over several at once without deadlock.
///
/// It excludes threads and processes alike. Like `std::mutex` it is not recursive, and `unlock` belongs to the
/// thread that locked; unlike it, it can be lost while locked: `held()` and `stop_token()` tell. Thread-safe.
/// The lock object that it is made from outlives it. A forked child makes one of its own: another thread may have
/// been in the middle of a call of this one.
class DistributedMutex {
  public:
    /// `options.wait_timeout` bounds `lock()`; 0, the default, means without limit, as for any mutex.
    /// Throws `std::invalid_argument` if the key or an option makes no sense.
    DistributedMutex(LockOperations& locks, std::string_view key, LockOptions options = {})
        : locks_{locks}, key_{key}, options_{std::move(options)} {
        locks_.validate(key_, options_);
    }

    DistributedMutex(const DistributedMutex&) = delete;
    DistributedMutex& operator=(const DistributedMutex&) = delete;
    ~DistributedMutex() = default;

    /// Waits for the lock. Throws what `LockOperations::lock` throws.
    void lock() {
        LockOptions options = options_;
        if (options.wait_timeout == TimeSpan{}) options.wait_timeout = TimeSpan::max();
        keep(locks_.lock(key_, options));
    }

    /// True if the lock is ours now, false if somebody else holds it; does not wait.
    [[nodiscard]] bool try_lock() { return try_for(TimeSpan{}); }

    /// As try_lock, but waits for up to `limit`; a limit of 0 or less does not wait.
    template <typename Rep, typename Period>
    [[nodiscard]] bool try_lock_for(const std::chrono::duration<Rep, Period>& limit) {
        return try_for(std::max(TimeSpan{limit}, TimeSpan{}));
    }

    /// As try_lock, but waits until `limit` by its own clock, read once.
    template <typename ClockType, typename D>
    [[nodiscard]] bool try_lock_until(const std::chrono::time_point<ClockType, D>& limit) {
        const auto now = ClockType::now();
        return limit > now ? try_lock_for(limit - now) : try_lock();
    }

    /// Releases the lock that this thread took. In a thread that took none (a `std::unique_lock` may have been
    /// moved) it ends one that has been lost, if there is one, else the only one there is. Never throws: what
    /// cannot be released now goes on in the background, and the observer sees it.
    void unlock() noexcept {
        // Released outside of the mutex, which must not be held during I/O.
        const std::optional<Owned> ended = take();
    }

    /// Whether the lock that this thread took is certainly ours at this instant.
    [[nodiscard]] bool held() const {
        const std::lock_guard lock{mutex_};
        const auto own = find_own();
        return own != owned_.end() && own->guard.held();
    }

    /// Stops when the lock that this thread took is lost; a token that never stops if it took none.
    [[nodiscard]] std::stop_token stop_token() const {
        const std::lock_guard lock{mutex_};
        const auto own = find_own();
        return own != owned_.end() ? own->guard.stop_token() : std::stop_token{};
    }

  private:
    // There is more than one only when a lock was lost: its thread does not know yet, while another has it.
    struct Owned {
        std::thread::id owner;
        LockGuard guard;
    };

    [[nodiscard]] bool try_for(TimeSpan wait) {
        LockOptions options = options_;
        options.wait_timeout = wait;
        auto guard = locks_.try_lock(key_, options);
        if (guard) keep(std::move(*guard));
        return guard.has_value();
    }

    void keep(LockGuard guard) {
        const std::lock_guard lock{mutex_};
        owned_.push_back({std::this_thread::get_id(), std::move(guard)});
    }

    [[nodiscard]] std::vector<Owned>::const_iterator find_own() const {
        return std::ranges::find(owned_, std::this_thread::get_id(), &Owned::owner);
    }

    [[nodiscard]] std::vector<Owned>::const_iterator find_to_unlock() const {
        if (const auto own = find_own(); own != owned_.end()) return own;
        const auto lost = std::ranges::find_if(owned_, [](const Owned& each) { return !each.guard.held(); });
        if (lost != owned_.end()) return lost;
        return owned_.size() == 1 ? owned_.begin() : owned_.end();
    }

    [[nodiscard]] std::optional<Owned> take() noexcept {
        const std::lock_guard lock{mutex_};
        const auto found = owned_.begin() + (find_to_unlock() - owned_.cbegin());
        if (found == owned_.end()) return std::nullopt;
        std::optional<Owned> owned{std::move(*found)};
        owned_.erase(found);
        return owned;
    }

    LockOperations& locks_;
    const std::string key_;
    const LockOptions options_;
    mutable std::mutex mutex_;
    std::vector<Owned> owned_;  // guarded by mutex_
};

}  // namespace kunci
