#pragma once

#include <kunci/observer.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

namespace kunci::test {

/// Keeps every event, and lets a test await one instead of sleeping. Thread-safe.
class RecordingObserver final : public Observer {
  public:
    struct Seen {
        Event event;  // without its views
        std::string key;
        std::string detail;
    };

    void on_event(const Event& event) override {
        {
            const std::lock_guard lock{mutex_};
            seen_.push_back({event, std::string{event.key}, std::string{event.detail}});
            seen_.back().event.key = {};
            seen_.back().event.detail = {};
        }
        changed_.notify_all();
    }

    [[nodiscard]] std::vector<Seen> seen() const {
        const std::lock_guard lock{mutex_};
        return seen_;
    }

    [[nodiscard]] std::size_t count(Event::Kind kind) const {
        const std::lock_guard lock{mutex_};
        return count_locked(kind);
    }

    /// Waits until `kind` has been seen `times`; false if that takes longer than any test should.
    [[nodiscard]] bool await(Event::Kind kind, std::size_t times = 1) const {
        std::unique_lock lock{mutex_};
        return changed_.wait_for(lock, std::chrono::seconds{20}, [&] { return count_locked(kind) >= times; });
    }

  private:
    [[nodiscard]] std::size_t count_locked(Event::Kind kind) const {
        return static_cast<std::size_t>(
            std::ranges::count(seen_, kind, [](const Seen& seen) { return seen.event.kind; }));
    }

    mutable std::mutex mutex_;
    mutable std::condition_variable changed_;
    std::vector<Seen> seen_;  // guarded by mutex_
};

}  // namespace kunci::test
