#pragma once

#include <kunci/hiredis.hpp>
#include <kunci/kunci.hpp>

#include "log.hpp"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace kunci::campaign {

/// What a worker process does.
struct WorkerSettings {
    std::string url;
    int process = 0;
    int threads = 4;
    int locks = 3;
    std::chrono::milliseconds ttl{400};
    std::uint64_t seed = 1;
};

/// The threads of one process: they take locks, hold them for a while, and write down what they are told.
class Worker {
  public:
    Worker(WorkerSettings settings, Log& log)
        : settings_{std::move(settings)},
          log_{log},
          locks_{HiredisConnection{settings_.url}, {.operation_timeout = std::chrono::milliseconds{150}}} {}

    void run() {
        std::vector<std::jthread> threads;
        for (int t = 0; t < settings_.threads; ++t) threads.emplace_back([this, t] { work(t); });
    }

  private:
    using Random = std::mt19937_64;

    [[nodiscard]] static std::int64_t now() { return SteadyClock::now().time_since_epoch().count(); }
    [[nodiscard]] static std::chrono::milliseconds up_to(std::chrono::milliseconds most, Random& random) {
        return std::chrono::milliseconds{random() % static_cast<std::uint64_t>(most.count() + 1)};
    }
    [[nodiscard]] static std::string key_of(int lock) { return "campaign-" + std::to_string(lock); }

    void work(int thread) {
        Random random{settings_.seed * 1009 + static_cast<std::uint64_t>(thread)};
        while (log_.phase == Phase::run) {
            const int lock = static_cast<int>(random() % static_cast<std::uint64_t>(settings_.locks));
            switch (random() % 8) {
                case 0:
                    by_hand(lock, thread, random);
                    break;
                case 1:
                    with_guard(lock, thread, random, false);
                    break;
                case 2:
                    cancelled(lock);
                    break;
                default:
                    with_guard(lock, thread, random, true);
                    break;
            }
        }
        settle(thread);
    }

    [[nodiscard]] LockOptions options(Random& random, bool refresh) const {
        return {.ttl = settings_.ttl,
                .wait_timeout = up_to(std::chrono::milliseconds{1000}, random),
                .retry_interval = std::chrono::milliseconds{10},
                .auto_refresh = refresh};
    }

    void with_guard(int lock, int thread, Random& random, bool refresh) {
        const auto called = now();
        std::error_code error;
        auto guard = locks_.lock(key_of(lock), options(random, refresh), error);
        if (!guard) return count(error);
        TenureLog* tenure = enter(lock, thread, guard->token().token(), called, true);
        if (tenure == nullptr) return;
        {
            const std::stop_callback note{guard->stop_token(), [tenure, &guard] {
                                              tenure->valid_when_lost =
                                                  guard->valid_until().time_since_epoch().count();
                                              tenure->lost_at = now();
                                              ++tenure->losses;
                                          }};
            stay(*tenure, random, [&] {
                const bool held = guard->held();
                return std::pair{held, guard->valid_until()};
            });
        }
        tenure->release_begun = now();
        if (random() % 2 == 0) {
            guard.reset();
            tenure->release_result = ReleaseResult::scope_end;
        } else {
            const bool released = guard->release(error);
            tenure->release_result = result_of(released, error);
        }
        tenure->release_ended = now();
    }

    void by_hand(int lock, int thread, Random& random) {
        const auto called = now();
        std::error_code error;
        auto token = locks_.acquire(key_of(lock), options(random, false), error);
        if (!token) return count(error);
        TenureLog* tenure = enter(lock, thread, token->token(), called, false);
        if (tenure == nullptr) return;
        auto refresh_at = locks_.now() + settings_.ttl / 3;
        stay(*tenure, random, [&] {
            if (locks_.now() >= refresh_at) {
                std::error_code ignored;
                static_cast<void>(locks_.refresh(*token, settings_.ttl, ignored));
                refresh_at = locks_.now() + settings_.ttl / 3;
            }
            const auto before = locks_.now();
            return std::pair{before < token->valid_until(), token->valid_until()};
        });
        tenure->release_begun = now();
        const bool released = locks_.release(*token, error);
        tenure->release_result = result_of(released, error);
        tenure->release_ended = now();
    }

    void cancelled(int lock) {
        std::stop_source source;
        std::jthread cancels{[&source] {
            ::poll(nullptr, 0, 20);
            source.request_stop();
        }};
        std::error_code error;
        const auto guard = locks_.lock(key_of(lock),
                                       {.ttl = settings_.ttl,
                                        .wait_timeout = std::chrono::seconds{2},
                                        .retry_interval = std::chrono::milliseconds{10},
                                        .cancel = source.get_token()},
                                       error);
        if (!guard) count(error);
    }

    [[nodiscard]] TenureLog* enter(int lock, int thread, std::string_view token, std::int64_t called,
                                   bool guarded) {
        const auto entered = now();
        TenureLog* tenure = log_.take();
        if (tenure == nullptr) return nullptr;
        tenure->lock = lock;
        tenure->process = settings_.process;
        tenure->thread = thread;
        tenure->guarded = guarded;
        std::memcpy(tenure->token.data(), token.data(), std::min(token.size(), tenure->token.size()));
        tenure->called = called;
        tenure->entered = entered;
        tenure->complete = true;
        return tenure;
    }

    /// Inside the critical section: asks again and again whether the lock is held, and notes each yes.
    template <typename Ask>
    void stay(TenureLog& tenure, Random& random, Ask ask) const {
        // Mostly short, sometimes so long that a lease must be refreshed several times.
        const bool long_stay = random() % 8 == 0;
        const auto stay_until =
            SteadyClock::now() + up_to(long_stay ? 3 * settings_.ttl : settings_.ttl / 20, random);
        while (true) {
            const auto before = SteadyClock::now();
            const auto [held, valid_until] = ask();
            if (!held) return;
            tenure.valid_until = valid_until.time_since_epoch().count();
            tenure.last_held = before.time_since_epoch().count();
            if (before >= stay_until || log_.phase != Phase::run) return;
            ::poll(nullptr, 0, 1);
        }
    }

    [[nodiscard]] static ReleaseResult result_of(bool released, const std::error_code& error) {
        if (error) return ReleaseResult::unknown;
        return released ? ReleaseResult::yes : ReleaseResult::no;
    }

    void count(const std::error_code& error) {
        auto& counter = error == Errc::lock_held   ? log_.refused
                        : error == Errc::cancelled ? log_.cancelled
                                                   : log_.failed;
        ++counter;
    }

    void settle(int thread) {
        for (int lock = 0; lock < settings_.locks; ++lock) {
            std::error_code error;
            const auto guard = locks_.lock(
                key_of(lock), {.ttl = settings_.ttl, .wait_timeout = std::chrono::seconds{20}}, error);
            log_.turns_in_settling.at(static_cast<std::size_t>(settings_.process))
                .at(static_cast<std::size_t>(thread))
                .at(static_cast<std::size_t>(lock)) = guard ? 1 : -1;
        }
    }

    WorkerSettings settings_;
    Log& log_;
    DistributedLock<HiredisConnection> locks_;
};

}  // namespace kunci::campaign
