#pragma once

#include <kunci/adapters/hiredis/endpoint.hpp>
#include <kunci/adapters/hiredis/redis_url.hpp>
#include <kunci/detail/signals_blocked.hpp>
#include <kunci/time.hpp>

#include <netdb.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace kunci::hiredis_detail {

/// A look-up on a thread of its own: getaddrinfo knows no deadline and cannot be cancelled, so whoever asked
/// may go away before it comes back.
class LookUp {
  public:
    using Function = std::function<Addresses()>;

    /// Throws `std::system_error` if no thread can be started.
    explicit LookUp(Function function) : state_{std::make_shared<State>()} {
        const detail::SignalsBlocked blocked;
        std::thread{[state = state_, function = std::move(function)] { run(*state, function); }}.detach();
    }

    /// Waits for the addresses; empty if the deadline comes first. They are given once.
    [[nodiscard]] std::optional<Addresses> wait(Deadline deadline) {
        std::unique_lock lock{state_->mutex};
        while (!state_->result) {
            const TimePoint now = SteadyClock::now();
            if (now >= deadline) return std::nullopt;
            const Duration left =
                std::min<Duration>(saturating_until(now, deadline), std::chrono::seconds{1});
            state_->done.wait_until(lock, std::chrono::steady_clock::now() + left);
        }
        return std::move(state_->result);
    }

  private:
    struct State {
        std::mutex mutex;
        std::condition_variable done;
        std::optional<Addresses> result;  // guarded by mutex
    };

    static void run(State& state, const Function& function) {
        Addresses result;
        try {
            result = function();
        } catch (const std::exception&) {
            result = {{}, {}, true};  // out of memory: a text might not fit either
        }
        const std::lock_guard lock{state.mutex};
        state.result = std::move(result);
        state.done.notify_all();
    }

    std::shared_ptr<State> state_;
};

/// Finds the addresses behind a URL within a deadline. One thread at a time.
class Resolver {
  public:
    using NameLookUp = std::function<Addresses(const std::string& host, std::uint16_t port)>;

    /// Does not block. Throws `std::invalid_argument` if the path of a Unix socket is too long.
    /// `look_up` is called for host names, on a thread of its own that may outlive the resolver.
    explicit Resolver(const RedisUrl& url, NameLookUp look_up = system_look_up)
        : host_{url.host}, port_{url.port}, look_up_{std::move(look_up)} {
        if (url.is_unix_socket()) {
            fixed_.endpoints.push_back(Endpoint::unix_socket(url.socket_path));
        } else {
            fixed_ = get_addresses(host_, port_, AI_NUMERICHOST);
        }
    }

    [[nodiscard]] Addresses resolve(Deadline deadline) {
        if (!fixed_.endpoints.empty()) return fixed_;
        try {
            if (!pending_)
                pending_.emplace(
                    [look_up = look_up_, host = host_, port = port_] { return look_up(host, port); });
        } catch (const std::system_error& error) {
            return or_last_good({{}, std::string{"name look-up: no thread: "} + error.what(), true});
        }
        std::optional<Addresses> found = pending_->wait(patience(deadline));
        if (!found) return or_last_good({{}, "name look-up: no answer before the deadline", true});
        pending_.reset();
        if (found->endpoints.empty()) return or_last_good(std::move(*found));
        last_good_ = *found;
        return std::move(*found);
    }

  private:
    static Addresses system_look_up(const std::string& host, std::uint16_t port) {
        return get_addresses(host, port, 0);
    }

    /// Where there are addresses to fall back to, enough time must remain to connect to them.
    [[nodiscard]] Deadline patience(Deadline deadline) const {
        if (last_good_.endpoints.empty()) return deadline;
        const TimePoint now = SteadyClock::now();
        return saturating_add(now, saturating_until(now, deadline) / 2);
    }

    [[nodiscard]] Addresses or_last_good(Addresses failure) const {
        if (failure.error.empty()) failure.error = "name look-up: failed";
        return failure.temporary && !last_good_.endpoints.empty() ? last_good_ : failure;
    }

    std::string host_;
    std::uint16_t port_;
    NameLookUp look_up_;
    Addresses fixed_;                // of a Unix socket or a numeric address
    Addresses last_good_;            // what the last look-up that succeeded found
    std::optional<LookUp> pending_;  // one at most, so that look-ups that hang do not pile up
};

}  // namespace kunci::hiredis_detail
