#pragma once

#include <kunci/clock.hpp>
#include <kunci/driver/background_thread.hpp>
#include <kunci/driver/transport.hpp>
#include <kunci/protocol/lease.hpp>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace kunci::driver {

/// Gives back in the background what nobody waits for: locks whose acquire was given up with an unknown outcome,
/// and locks whose release got no answer. It keeps trying for one TTL, after which the server has dropped the
/// key anyway. Its thread lives only while there is something to do. Thread-safe.
class BackgroundReleaser {
  public:
    BackgroundReleaser(std::shared_ptr<Transport> transport, Clock& clock, Duration operation_timeout)
        : state_{std::make_shared<State>(std::move(transport), clock, operation_timeout)} {}
    BackgroundReleaser(const BackgroundReleaser&) = delete;
    BackgroundReleaser& operator=(const BackgroundReleaser&) = delete;

    /// Lets every lease that has not been asked for yet have one try, as far as one operation timeout goes for
    /// all of them, then stops.
    ~BackgroundReleaser() {
        state_->stop_by.store(saturating_add(state_->clock.now(), state_->operation_timeout));
        state_->wakeup.signal();
        thread_.join_unless_self();
    }

    /// Takes over a tenure that has ended. If there can be no thread, the key is left to its TTL.
    void take(protocol::Lease lease) noexcept {
        try {
            const TimePoint now = state_->clock.now();
            lease.forget_requests();
            lease.release(now, saturating_add(now, lease.terms().ttl), true);
            const std::lock_guard lock{state_->mutex};
            state_->incoming.push_back(std::move(lease));
            if (!state_->running) {
                thread_.join_unless_self();  // it has left its loop
                thread_.start([state = state_] { state->run(); });
                state_->running = true;
            }
        } catch (...) {  // NOLINT(bugprone-empty-catch): no memory or no thread; the TTL ends the key
        }
        state_->wakeup.signal();
    }

  private:
    struct State {
        State(std::shared_ptr<Transport> t, Clock& c, Duration timeout)
            : transport{std::move(t)}, clock{c}, operation_timeout{timeout} {}

        void run() noexcept {
            while (fetch()) {
                try {
                    send_what_is_due();
                    sleep();
                } catch (...) {  // out of memory: the TTL ends the keys
                    leases.clear();
                }
            }
        }

        /// Adds what has come in. Returns false if there is nothing to do: then the thread must touch nothing any
        /// more, since another one may have been started.
        bool fetch() noexcept {
            const std::lock_guard lock{mutex};
            if (incoming.empty() && (leases.empty() || stopping())) {
                leases.clear();
                running = false;
                return false;
            }
            try {
                std::ranges::move(incoming, std::back_inserter(leases));
            } catch (...) {  // NOLINT(bugprone-empty-catch): out of memory; the TTL ends the keys
            }
            incoming.clear();
            return true;
        }

        void send_what_is_due() {
            for (auto& lease : leases) send_due(lease);
            std::erase_if(leases, [](const protocol::Lease& lease) {
                return lease.phase() == protocol::Lease::Phase::over;
            });
        }

        void send_due(protocol::Lease& lease) {
            while (clock.now() < stop_by.load()) {
                const auto request = lease.next_request(clock.now());
                if (!request) return;
                const Outcome outcome = perform(*transport, *request, lease);
                lease.on_outcome(request->node, request->id, outcome, clock.now());
            }
        }

        void sleep() {
            if (leases.empty() || stopping()) return;
            TimePoint wake = TimePoint::max();
            for (const auto& lease : leases) wake = std::min(wake, lease.wake_at());
            clock.sleep_until(wakeup, wake);
        }

        [[nodiscard]] bool stopping() const { return stop_by.load() != TimePoint::max(); }

        const std::shared_ptr<Transport> transport;
        Clock& clock;
        const Duration operation_timeout;
        Wakeup wakeup;
        std::atomic<TimePoint> stop_by{TimePoint::max()};
        std::vector<protocol::Lease> leases;  // the thread's own
        std::mutex mutex;
        std::vector<protocol::Lease> incoming;  // guarded by mutex
        bool running = false;                   // guarded by mutex
    };

    std::shared_ptr<State> state_;
    BackgroundThread thread_;  // guarded by state_->mutex until the destructor
};

}  // namespace kunci::driver
