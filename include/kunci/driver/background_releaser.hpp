#pragma once

#include <kunci/clock.hpp>
#include <kunci/driver/quiet_thread.hpp>
#include <kunci/driver/transport.hpp>
#include <kunci/protocol/lease.hpp>

#include <algorithm>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace kunci::driver {

/// Gives back in the background what nobody waits for: locks whose acquire was given up with an unknown outcome,
/// and locks whose release got no answer. It keeps trying for one TTL, after which the server has dropped the
/// key anyway. Its thread lives only while there is something to do. Thread-safe.
class BackgroundReleaser {
  public:
    BackgroundReleaser(std::shared_ptr<Transport> transport, Clock& clock)
        : state_{std::make_shared<State>(std::move(transport), clock)} {}
    BackgroundReleaser(const BackgroundReleaser&) = delete;
    BackgroundReleaser& operator=(const BackgroundReleaser&) = delete;

    /// Lets every lease that has not been asked for yet have one try, then stops.
    ~BackgroundReleaser() {
        {
            const std::lock_guard lock{state_->mutex};
            state_->stopping = true;
        }
        state_->wakeup.signal();
        join_unless_self(thread_);
    }

    /// Takes over a tenure that has ended. If there can be no thread, the key is left to its TTL.
    void take(protocol::Lease lease) noexcept {
        try {
            const TimePoint now = state_->clock.now();
            lease.release(now, saturating_add(now, lease.terms().ttl), true);
            const std::lock_guard lock{state_->mutex};
            state_->incoming.push_back(std::move(lease));
            if (!state_->running) {
                join_unless_self(thread_);  // it has left its loop
                thread_ = start_quiet_thread([state = state_] { state->run(); });
                state_->running = true;
            }
        } catch (...) {  // NOLINT(bugprone-empty-catch): no memory or no thread; the TTL ends the key
        }
        state_->wakeup.signal();
    }

  private:
    struct State {
        State(std::shared_ptr<Transport> t, Clock& c) : transport{std::move(t)}, clock{c} {}

        void run() noexcept {
            std::vector<protocol::Lease> leases;
            while (fetch(leases)) {
                for (auto& lease : leases) send_due(lease);
                std::erase_if(leases, [](const protocol::Lease& lease) {
                    return lease.phase() == protocol::Lease::Phase::over;
                });
                TimePoint wake = TimePoint::max();
                for (const auto& lease : leases) wake = std::min(wake, lease.wake_at());
                if (!leases.empty()) clock.sleep_until(wakeup, wake);
            }
        }

        /// Adds what has come in; returns whether there is anything to do.
        bool fetch(std::vector<protocol::Lease>& leases) {
            const std::lock_guard lock{mutex};
            const bool nothing_new = incoming.empty();
            if (nothing_new && (leases.empty() || stopping)) {
                running = false;
                return false;
            }
            std::ranges::move(incoming, std::back_inserter(leases));
            incoming.clear();
            return true;
        }

        void send_due(protocol::Lease& lease) {
            while (const auto request = lease.next_request(clock.now())) {
                const Outcome outcome = perform(*transport, *request, lease);
                lease.on_outcome(request->node, request->id, outcome, clock.now());
            }
        }

        std::shared_ptr<Transport> transport;
        Clock& clock;
        Wakeup wakeup;
        std::mutex mutex;
        std::vector<protocol::Lease> incoming;  // guarded by mutex
        bool running = false;                   // guarded by mutex
        bool stopping = false;                  // guarded by mutex
    };

    std::shared_ptr<State> state_;
    std::thread thread_;  // guarded by state_->mutex until the destructor
};

}  // namespace kunci::driver
