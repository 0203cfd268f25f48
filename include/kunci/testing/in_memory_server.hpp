#pragma once

#include <kunci/clock.hpp>
#include <kunci/connection/command.hpp>
#include <kunci/connection/connection.hpp>
#include <kunci/connection/outcome.hpp>
#include <kunci/connection/reply.hpp>
#include <kunci/testing/model_redis.hpp>
#include <kunci/time.hpp>

#include <chrono>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kunci::testing {

namespace detail {

/// What an in-memory server and its connections share. Thread-safe.
class SharedModel {
  public:
    explicit SharedModel(Clock& clock) : clock_{clock} {}

    Outcome execute(const Command& command, Deadline deadline) {
        const std::lock_guard lock{mutex_};
        const TimePoint now = clock_.now();
        if (now >= deadline) {
            return Fault::not_sent(Errc::unreachable, "in-memory server: the deadline had passed already");
        }
        std::vector<std::string> arguments;
        for (std::size_t i = 0; i < command.size(); ++i) arguments.emplace_back(command[i]);
        log_.push_back(std::move(arguments));
        return model_.execute(command, wall_time(now));
    }

    Reply execute_unseen(std::span<const std::string_view> arguments) {
        const std::lock_guard lock{mutex_};
        return model_.execute(arguments, wall_time(clock_.now()));
    }

    [[nodiscard]] std::vector<std::vector<std::string>> log() const {
        const std::lock_guard lock{mutex_};
        return log_;
    }
    [[nodiscard]] std::size_t log_size() const {
        const std::lock_guard lock{mutex_};
        return log_.size();
    }
    void clear_log() {
        const std::lock_guard lock{mutex_};
        log_.clear();
    }

  private:
    /// A server knows the time of day, a lock's clock has no date: it is taken to have started in November
    /// 2023.
    [[nodiscard]] static WallTime wall_time(TimePoint now) {
        constexpr std::chrono::seconds start{1'700'000'000};
        return start + std::chrono::floor<WallTime>(now.time_since_epoch());
    }

    Clock& clock_;
    mutable std::mutex mutex_;
    ModelRedis model_;                           // guarded by mutex_
    std::vector<std::vector<std::string>> log_;  // guarded by mutex_
};

}  // namespace detail

/// A connection to an `InMemoryServer`; meets the Connection and RecallingConnection requirements. It answers
/// at once, so nothing is ever in flight and there is nothing to recall. Copies lead to the same server,
/// which lives as long as the last of them. Thread-safe.
class InMemoryConnection {
  public:
    /// `not_sent` if the deadline has passed by the server's clock; otherwise the server's reply.
    Outcome execute(const Command& command, Deadline deadline) { return model_->execute(command, deadline); }

    Outcome execute(const Command& command, Deadline deadline, const Command& /*recall*/) {
        return execute(command, deadline);
    }

  private:
    friend class InMemoryServer;
    explicit InMemoryConnection(std::shared_ptr<detail::SharedModel> model) : model_{std::move(model)} {}

    std::shared_ptr<detail::SharedModel> model_;
};

static_assert(RecallingConnection<InMemoryConnection>);

/// A Redis server inside the test, as `ModelRedis` describes it, whose keys expire by the clock that the test
/// moves. It also writes down what it was asked. Thread-safe.
class InMemoryServer {
  public:
    /// `clock` must outlive the server and all its connections.
    explicit InMemoryServer(Clock& clock) : model_{std::make_shared<detail::SharedModel>(clock)} {}

    [[nodiscard]] InMemoryConnection connect() const { return InMemoryConnection{model_}; }

    /// Looks at the server, or changes it, behind the locks' back: `server.command({"GET", "lock:x"})`. Is
    /// not recorded.
    Reply command(std::initializer_list<std::string_view> arguments) const {
        return model_->execute_unseen({arguments.begin(), arguments.size()});
    }

    /// Every command that arrived over a connection, oldest first, each as its arguments.
    [[nodiscard]] std::vector<std::vector<std::string>> commands() const { return model_->log(); }
    [[nodiscard]] std::size_t command_count() const { return model_->log_size(); }
    /// Forgets the commands recorded so far.
    void clear_commands() { model_->clear_log(); }

  private:
    std::shared_ptr<detail::SharedModel> model_;
};

}  // namespace kunci::testing
