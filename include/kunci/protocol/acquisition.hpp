#pragma once

#include <kunci/protocol/lease.hpp>
#include <kunci/time.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace kunci::protocol {

/// How long and how often to ask for a lock.
struct Patience {
    TimePoint started;
    /// 0: try once.
    Duration wait_timeout{0};
    /// The longest pause between two tries.
    Duration retry_interval = std::chrono::milliseconds{50};
};

/// Asks for a lock until it is granted, refused for good, or the wait is over: a state machine on top of a
/// `Lease`, without clock, thread or socket; driven in the same way. Not thread-safe.
///
/// A temporary trouble of the server or the network is waited out like a holder; a permanent one ends the wait
/// at once. Waiting is by looking again, after a pause that is cut short at random and never outlasts the
/// holder's key.
class Acquisition {
  public:
    enum class Result { pending, granted, refused, failed, cancelled };

    /// REQUIRES: `lease` is idle, and outlives this.
    Acquisition(Lease& lease, Patience patience, std::uint64_t seed)
        : lease_{&lease},
          patience_{patience},
          give_up_at_{saturating_add(patience.started, patience.wait_timeout)},
          jitter_{seed} {}

    [[nodiscard]] std::optional<Request> next_request(TimePoint now) {
        if (result_ != Result::pending) return std::nullopt;
        if (!trying_ && attempts_ > 0 && now >= give_up_at_) {
            give_up();
            return std::nullopt;
        }
        if (!trying_ && now >= try_at_) start_try(now);
        if (!trying_) return std::nullopt;
        return lease_->next_request(now);
    }

    void on_outcome(NodeIndex node, std::uint64_t id, const Outcome& outcome, TimePoint now) {
        lease_->on_outcome(node, id, outcome, now);
        if (!trying_ || lease_->try_state() == Lease::Try::pending) return;
        trying_ = false;
        judge(now);
    }

    /// Ends the wait now. REQUIRES: no request is under way.
    void cancel() {
        if (result_ == Result::pending) result_ = Result::cancelled;
    }

    [[nodiscard]] TimePoint wake_at() const { return trying_ ? lease_->wake_at() : try_at_; }
    [[nodiscard]] Result result() const { return result_; }
    /// Whether the lock has been found taken, and the wait goes on.
    [[nodiscard]] bool waiting() const { return result_ == Result::pending && !trying_ && refused_; }
    /// How many times the lock was asked for.
    [[nodiscard]] std::size_t attempts() const { return attempts_; }
    /// How long the holder's key lives on, as far as the last refusal told.
    [[nodiscard]] std::optional<Duration> holder_ttl() const { return verdict_.holder_ttl; }
    /// Why the lock is not granted, as far as is known.
    [[nodiscard]] const Verdict& verdict() const { return verdict_; }

  private:
    // A wait that is shorter than a round trip would never learn anything: the first try has this long.
    static constexpr Duration shortest_first_try = std::chrono::milliseconds{100};
    static constexpr Duration longest_first_pause = std::chrono::milliseconds{50};
    // What a try may take beyond twice the time of the one before.
    static constexpr Duration margin_of_last_try = std::chrono::milliseconds{1};

    [[nodiscard]] bool once() const { return patience_.wait_timeout == Duration::zero(); }

    void start_try(TimePoint now) {
        const Deadline by_timeout = saturating_add(now, lease_->terms().operation_timeout);
        const Deadline by_patience = once() ? Deadline::max()
                                     : attempts_ == 0
                                         ? std::max(give_up_at_, saturating_add(now, shortest_first_try))
                                         : give_up_at_;
        trying_ = true;
        try_began_ = now;
        ++attempts_;
        try_deadline_ = std::min(by_timeout, by_patience);
        lease_->begin(try_deadline_, once() || by_patience <= by_timeout);
    }

    void judge(TimePoint now) {
        const Lease::Try state = lease_->try_state();
        if (state == Lease::Try::granted) {
            result_ = Result::granted;
            return;
        }
        // A try that came too late to be sent has learnt nothing: what is known is what the one before has told.
        if (attempts_ == 1 || lease_->verdict().code != Errc::not_sent_in_time) {
            refused_ = state == Lease::Try::refused;
            verdict_ = lease_->verdict();
        }
        const bool hopeless = !refused_ && verdict_.permanent;
        if (once() || hopeless || now >= give_up_at_) {
            give_up();
            return;
        }
        try_at_ = std::min(next_try(now), give_up_at_);
        // A try whose answer would come too late is not begun: it could only turn a clear answer into doubt.
        const Duration round_trip = now - try_began_;
        const bool answered = now < try_deadline_;
        if (answered && saturating_add(try_at_, 2 * round_trip + margin_of_last_try) >= give_up_at_) {
            try_at_ = give_up_at_;
        }
    }

    void give_up() { result_ = refused_ ? Result::refused : Result::failed; }

    [[nodiscard]] TimePoint next_try(TimePoint now) {
        if (now >= try_deadline_) return now;  // nothing came for a whole timeout: that was pause enough
        // The first refusal, of a plain SET, does not tell how long the holder's key lives: look again soon.
        const bool told_nothing = attempts_ == 1 && refused_;
        const Duration interval =
            told_nothing ? std::min(patience_.retry_interval, longest_first_pause) : patience_.retry_interval;
        TimePoint at = saturating_add(now, interval - jitter_.up_to(interval / 2));
        // Redis ends a key after its last millisecond, so one more.
        if (verdict_.holder_ttl) {
            const TimePoint last = saturating_add(now, *verdict_.holder_ttl);
            at = std::min(at, saturating_add(last, std::chrono::milliseconds{1}));
        }
        return at;
    }

    Lease* lease_;
    Patience patience_;
    TimePoint give_up_at_;
    Jitter jitter_;
    TimePoint try_began_;
    TimePoint try_deadline_;
    bool trying_ = false;
    bool refused_ = false;
    TimePoint try_at_ = TimePoint::min();
    std::size_t attempts_ = 0;
    Verdict verdict_;  // of the last try that learnt something
    Result result_ = Result::pending;
};

}  // namespace kunci::protocol
