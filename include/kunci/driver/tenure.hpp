#pragma once

#include <kunci/clock.hpp>
#include <kunci/detail/process_mark.hpp>
#include <kunci/driver/lock_client.hpp>
#include <kunci/driver/loss_timer.hpp>
#include <kunci/driver/refresher.hpp>
#include <kunci/lock_token.hpp>
#include <kunci/protocol/lease.hpp>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <variant>

namespace kunci::driver {

/// The state behind a guard: one lease, kept alive by its refresher and watched by the client's loss timer.
/// Thread-safe; shared by the guard, the refresher's thread and the timer.
///
/// Whether the lease is held is compared with the clock at every look, so it needs no thread to be true. That it
/// is over is sticky; that it was lost is announced by the timer alone, hence exactly once.
class Tenure final : public LossTimer::Watched, public std::enable_shared_from_this<Tenure> {
  public:
    /// REQUIRES: `lease` is held.
    Tenure(std::shared_ptr<LockClient> client, protocol::Lease lease)
        : client_{std::move(client)},
          acquired_at_{client_->clock().now()},
          lease_{std::move(lease)},
          valid_until_{lease_.valid_until()} {}

    /// Starts what runs beside the guard. Throws `std::system_error` if there can be no further thread.
    void start() {
        client_->loss_timer().watch(shared_from_this(), valid_until());
        if (lease_.terms().auto_refresh) {
            refresher_.start([self = shared_from_this()](Wakeup& wakeup) { self->keep_alive(wakeup); });
        }
    }

    /// Compares with the clock now. Who is the first to see that the lease is over makes it so for everybody.
    [[nodiscard]] bool held() { return remaining() > Duration::zero(); }
    [[nodiscard]] Duration remaining() {
        if (!is_held()) return Duration::zero();
        const Duration left = saturating_until(client_->clock().now(), valid_until());
        if (left == Duration::zero()) expire();
        return left;
    }
    [[nodiscard]] TimePoint valid_until() const { return valid_until_.load(std::memory_order_acquire); }
    [[nodiscard]] std::stop_token stop_token() const { return lost_.get_token(); }
    [[nodiscard]] LockToken token() const { return {lease_.key(), lease_.token(), valid_until()}; }

    /// Ends the tenure: true if it was ours until now, false if it had ended before. A failure leaves it to be
    /// tried again. When it returns, no refresh of this tenure will ever be sent. On a background thread, where
    /// it is called by an observer or a stop callback, a lost lease is given back without waiting for it.
    [[nodiscard]] LockClient::Released release() {
        if (!home_.is_of_this_process()) return false;
        auto result = release_silently();
        if (!result) return false;
        client_->tell_released(lease_.key(), *result, client_->clock().now() - acquired_at_);
        return std::move(*result);
    }

    /// As release, but what fails goes on in the background; and then nothing of this tenure runs any more.
    void abandon() noexcept {
        if (!home_.is_of_this_process()) return;
        try {
            if (std::holds_alternative<Failure>(release())) hand_over();
        } catch (...) {  // NOLINT(bugprone-empty-catch): out of memory; the TTL ends the key
        }
        refresher_.request_stop();
        refresher_.join();
        client_->loss_timer().unwatch(*this);
        client_->loss_timer().await_look(*this);
    }

    std::optional<TimePoint> look(TimePoint now) override {
        if (is_held()) {
            const TimePoint end = valid_until();
            if (now < end) return end;
            expire();
        }
        State expected = State::expired;
        if (!state_.compare_exchange_strong(expected, State::lost)) return std::nullopt;
        lost_.request_stop();
        tell_loss(now);
        return std::nullopt;
    }

  private:
    enum class State {
        held,
        expired,  // over, and the timer has yet to announce it
        lost,     // over, and announced
        ended,    // released before it was over
    };

    /// Nothing if it has been released before, or is being released by another thread that must not be waited for.
    [[nodiscard]] std::optional<LockClient::Released> release_silently() {
        const auto one_at_a_time = enter_release();
        if (!one_at_a_time || released_) return std::nullopt;
        const bool was_lost = !end();
        if (was_lost && on_background_thread) {
            // From the timer's thread as a rule: no I/O here, other losses may have to be told now.
            hand_over();
            released_ = true;
            return false;
        }
        const std::lock_guard lock{lease_mutex_};
        lease_.forget_requests();
        const TimePoint now = client_->clock().now();
        lease_.release(now, saturating_add(now, client_->options().operation_timeout), false);
        auto result = client_->finish_release(lease_);
        released_ = std::holds_alternative<bool>(result);
        return result;
    }

    // Whoever releases may wait for a background thread, so those do not wait for him.
    [[nodiscard]] std::unique_lock<std::mutex> enter_release() {
        if (on_background_thread) return std::unique_lock{release_mutex_, std::try_to_lock};
        return std::unique_lock{release_mutex_};
    }

    void hand_over() {
        const std::lock_guard lock{lease_mutex_};
        client_->releaser().take(lease_);
    }

    // A tenure belongs to the process that acquired it: a forked child has no thread that would keep it alive or
    // tell its loss, and its parent goes on using it.
    [[nodiscard]] bool is_held() const {
        return state_.load(std::memory_order_acquire) == State::held && home_.is_of_this_process();
    }

    // The first to see it makes it so: a lease that was over at one look is not held at the next.
    void expire() {
        State expected = State::held;
        if (!state_.compare_exchange_strong(expected, State::expired)) return;
        client_->loss_timer().look_now(shared_from_this());
    }

    // From here on the lease is not held, whatever the server says; and no refresh will be sent, except that a
    // background thread does not wait for one that is under way. Returns false if it had been over before.
    bool end() {
        State expected = State::held;
        state_.compare_exchange_strong(expected, State::ended);
        refresher_.request_stop();
        if (!on_background_thread) refresher_.join();
        const bool released = state_.load() == State::ended;
        if (released) client_->loss_timer().unwatch(*this);
        return released;
    }

    // The refresher's thread.
    void keep_alive(Wakeup& wakeup) noexcept {
        while (is_held() && !refresher_.stop_requested()) {
            try {
                take_step(wakeup);
            } catch (...) {  // out of memory: perhaps not for long, and the lease ends in time all the same
                wakeup.wait_for(lease_.terms().refresh_retry_interval());
            }
        }
    }

    // The lease is locked only while it is computed with, never during I/O.
    void take_step(Wakeup& wakeup) {
        Clock& clock = client_->clock();
        std::optional<protocol::Request> request;
        TimePoint wake;
        {
            const std::lock_guard lock{lease_mutex_};
            request = lease_.next_request(clock.now());
            wake = lease_.wake_at();
            if (lease_.phase() != protocol::Lease::Phase::held) return expire();
        }
        if (request) {
            refresh(*request);
        } else {
            clock.sleep_until(wakeup, wake);
        }
    }

    void refresh(const protocol::Request& request) {
        const Outcome outcome = perform(client_->transport(), request, lease_);
        std::optional<protocol::Verdict> verdict;
        bool still_ours = false;
        {
            const std::lock_guard lock{lease_mutex_};
            const TimePoint now = client_->clock().now();
            const auto* settled = lease_.on_outcome(request.node, request.id, outcome, now);
            if (settled != nullptr) verdict = *settled;
            if (verdict) note_trouble(*verdict);
            still_ours = lease_.phase() == protocol::Lease::Phase::held;
            const TimePoint end = still_ours ? lease_.valid_until() : std::min(now, valid_until());
            if (is_held()) valid_until_.store(end, std::memory_order_release);
        }
        if (!still_ours) expire();  // before the observer, which may take its time
        if (verdict) tell_refresh(*verdict);
    }

    // The timer's thread must not fail, not even for want of the memory to tell why.
    void tell_loss(TimePoint now) const noexcept {
        Event event{.kind = Event::Kind::lost,
                    .key = lease_.key().view(),
                    .held_for = now - acquired_at_,
                    .error = make_error_code(Errc::lease_lost)};
        std::string cause;
        try {
            cause = last_trouble();
        } catch (...) {  // NOLINT(bugprone-empty-catch): then without the cause
        }
        event.detail = cause;
        client_->tell(event);
    }

    void note_trouble(const protocol::Verdict& verdict) {
        const std::lock_guard lock{trouble_mutex_};
        trouble_ = words_of(verdict, client_->transport());  // empty after a success
    }

    [[nodiscard]] std::string last_trouble() const {
        const std::lock_guard lock{trouble_mutex_};
        return trouble_;
    }

    void tell_refresh(const protocol::Verdict& verdict) const {
        if (client_->options().observer == nullptr) return;
        const TimePoint now = client_->clock().now();
        std::string words;
        Event event{.kind = Event::Kind::refreshed,
                    .key = lease_.key().view(),
                    .held_for = now - acquired_at_,
                    .validity_left = saturating_until(now, valid_until())};
        if (verdict.answer != protocol::Verdict::Answer::yes) {
            event.kind = Event::Kind::refresh_failed;
            const bool not_ours = verdict.answer == protocol::Verdict::Answer::no;
            event.error = make_error_code(not_ours ? Errc::lease_lost : verdict.code);
            words = words_of(verdict, client_->transport());
            event.detail = words;
        }
        client_->tell(event);
    }

    const kunci::detail::ProcessMark home_;
    const std::shared_ptr<LockClient> client_;
    const TimePoint acquired_at_;
    std::mutex lease_mutex_;
    protocol::Lease lease_;  // guarded by lease_mutex_; its key, token and terms never change
    std::atomic<TimePoint> valid_until_;
    std::atomic<State> state_{State::held};
    std::stop_source lost_;
    Refresher refresher_;
    mutable std::mutex trouble_mutex_;
    std::string trouble_;  // guarded by trouble_mutex_; why the last refresh failed
    std::mutex release_mutex_;
    bool released_ = false;  // guarded by release_mutex_
};

}  // namespace kunci::driver
