#pragma once

#include <kunci/kunci.hpp>
#include <kunci/testing.hpp>

#include "support/recording_observer.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace kunci::test {

/// A model server, a clock that the test moves, and two clients: `locks` goes through a connection on which the
/// test can make things go wrong, `stranger` does not.
struct ModelBench {
    explicit ModelBench(ClientOptions options = {}) : locks{connect(), clock, with(options, observer)} {}

    [[nodiscard]] testing::FaultyConnection<testing::InMemoryConnection> connect() {
        return {server.connect(), faults};
    }

    static ClientOptions with(ClientOptions options, Observer& observer) {
        options.observer = &observer;
        return options;
    }

    [[nodiscard]] bool exists(std::string_view lock_key) const {
        return server.command({"EXISTS", lock_key}).integer() == 1;
    }
    [[nodiscard]] std::int64_t pttl(std::string_view lock_key) const {
        return server.command({"PTTL", lock_key}).integer();
    }
    /// How many commands with this name the server was sent.
    [[nodiscard]] std::size_t commands(std::string_view name) const {
        const auto all = server.commands();
        return static_cast<std::size_t>(
            std::ranges::count_if(all, [&](const auto& arguments) { return arguments[0] == name; }));
    }

    testing::ManualClock clock;
    testing::InMemoryServer server{clock};
    testing::FaultPlan faults{clock};
    RecordingObserver observer;
    DistributedLock<testing::FaultyConnection<testing::InMemoryConnection>> locks;
    DistributedLock<testing::InMemoryConnection> stranger{server.connect(), clock};
};

/// Awaits a stop: `StopAwaiter stopped{token}; ... EXPECT_TRUE(stopped.await());`
class StopAwaiter {
  public:
    explicit StopAwaiter(std::stop_token token) : callback_{std::move(token), Notify{this}} {}

    /// False if it takes longer than any test should.
    [[nodiscard]] bool await() {
        std::unique_lock lock{mutex_};
        return changed_.wait_for(lock, std::chrono::seconds{20}, [this] { return stopped_; });
    }

  private:
    struct Notify {
        StopAwaiter* self;
        void operator()() const {
            const std::lock_guard lock{self->mutex_};
            self->stopped_ = true;
            self->changed_.notify_all();
        }
    };

    std::mutex mutex_;
    std::condition_variable changed_;
    bool stopped_ = false;  // guarded by mutex_
    std::stop_callback<Notify> callback_;
};

}  // namespace kunci::test
