#pragma once

#include <kunci/connection/command.hpp>
#include <kunci/detail/small_bytes.hpp>
#include <kunci/lock_key.hpp>
#include <kunci/protocol/lease_node.hpp>
#include <kunci/protocol/lease_states.hpp>
#include <kunci/protocol/lease_terms.hpp>
#include <kunci/protocol/requests.hpp>
#include <kunci/protocol/verdict.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace kunci::protocol {

/// One tenure of a lock on N nodes, from the first command to the last: a state machine without clock, thread
/// or socket. N = 1 is the plain lock.
///
/// Whoever drives it sends what `next_request(now)` gives, hands every outcome to `on_outcome`, and comes back
/// no later than `wake_at()`. All instants are of one clock that never goes back. Not thread-safe.
///
/// **Lease containment**, the one rule that exclusion follows from: for each node the machine keeps an instant
/// up to which that node certainly holds our token,
///   - raised to (instant before the request went out) + validity when an acquire or refresh succeeded,
///   - taken away when the node says "not yours", and before any release is sent,
///   - left as it is by faults and errors, which prove nothing.
/// `valid_until()` is the quorum-th largest of them. Two clients that both believe would have their tokens on
/// two quorums at one instant, and these share a node, which holds one token.
class Lease {
  public:
    using Phase = LeasePhase;
    using Try = LeaseTry;
    using Release = LeaseRelease;
    Lease(LockKey key, std::string_view token, LeaseTerms terms, std::uint64_t seed)
        : key_{std::move(key)}, token_{token}, terms_{terms}, jitter_{seed}, nodes_(terms.nodes) {}

    // ---- what the owner wants -------------------------------------------------------------------------

    /// Starts a try to acquire, which ends by `deadline`. REQUIRES: idle, or acquiring with an ended try.
    /// `last`: if its deadline passes without an answer, the lock is given up; then no other try may follow,
    /// since the connection may have sent the release (`Request::recall`), and a released token is burnt.
    void begin(TimePoint deadline, bool last) { start_try(Phase::acquiring, deadline, last); }

    /// Starts to refresh a token that was acquired elsewhere. `valid_until`: if that is known; then the lease is
    /// over at that instant, as if it had been held here. REQUIRES: idle.
    void resume(TimePoint deadline, std::optional<TimePoint> valid_until) {
        resume_until_ = valid_until.value_or(TimePoint::max());
        start_try(Phase::resuming, std::min(deadline, resume_until_), false);
    }

    /// Ends the tenure from this instant on, and asks every node that was ever asked to delete the key if it is
    /// ours. `persistent`: keep asking until `deadline` (otherwise a node that cannot be reached is left alone),
    /// and ask again after the answer, in case a late SET is still under way.
    void release(TimePoint now, TimePoint deadline, bool persistent) {
        if (phase_ != Phase::releasing && phase_ != Phase::over) {
            release_begun_ = now;
            if (phase_ != Phase::idle) valid_before_release_ = valid_until();
        }
        phase_ = Phase::releasing;
        deadline_ = deadline;
        persistent_ = persistent;
        for (auto& node : nodes_) {
            node.lower_bound = TimePoint::min();
            node.answered = !node.asked;
            node.repeated = false;
            node.echoes = persistent && node.unsettled ? release_echoes : 0;
            node.retry_interval = first_release_retry;
            node.due = node.asked ? std::optional{now} : std::nullopt;
        }
        settle_release();
    }

    /// As `release`, for a token that was acquired elsewhere. `valid_until`: if that is known. `again`: a release
    /// of this token was asked for before, and had no answer. REQUIRES: idle.
    void release_known(TimePoint now, TimePoint deadline, std::optional<TimePoint> valid_until, bool again) {
        for (auto& node : nodes_) {
            node.asked = true;
            node.release_unsettled = again;
        }
        valid_before_release_ = valid_until;
        release(now, deadline, false);
    }

    /// Nobody will bring the outcomes of the requests that are under way.
    void forget_requests() {
        for (auto& node : nodes_) node.forget_request();
    }

    // ---- driving it -----------------------------------------------------------------------------------

    /// The next command to send, if one is due. Call it again until it is empty, then after every event.
    /// `now` must have been read before this call, and the bytes go out after it: leases count from `now`.
    [[nodiscard]] std::optional<Request> next_request(TimePoint now) {
        on_time(now);
        if (phase_ == Phase::lost || phase_ == Phase::over) return std::nullopt;
        for (std::size_t i = 0; i < nodes_.size(); ++i) {
            Node& node = nodes_[i];
            if (node.in_flight == 0 && node.due && *node.due <= now) return make_request(i, now);
        }
        return std::nullopt;
    }

    /// What became of a request. Outcomes of requests that the machine does not wait for are ignored.
    /// Returns what it means, valid until the next call; or null if the node will be asked again at once.
    const Verdict* on_outcome(NodeIndex index, std::uint64_t id, const Outcome& outcome, TimePoint now) {
        on_time(now);  // first: a lease that has ended is not revived by a reply that was late
        Node& node = nodes_[index];
        if (node.in_flight != id) return nullptr;
        if (!node.take_answer(outcome, token_.view())) {
            node.due = now;
            return nullptr;
        }
        node.verdict.node = index;
        return apply(node, now) ? &node.verdict : nullptr;
    }

    /// Lets time pass: a held lease that has run out is lost.
    void on_time(TimePoint now) {
        if (phase_ == Phase::held && now >= valid_until()) lose();
        if (phase_ == Phase::resuming && try_state_ == Try::pending && now >= resume_until_) {
            end_try(Try::refused);
        }
    }

    /// When `next_request` must be called at the latest, though nothing else happens.
    [[nodiscard]] TimePoint wake_at() const {
        TimePoint wake = phase_ == Phase::held ? valid_until() : TimePoint::max();
        for (const auto& node : nodes_) {
            if (node.in_flight == 0 && node.due) wake = std::min(wake, *node.due);
        }
        return wake;
    }

    // ---- what is known --------------------------------------------------------------------------------

    [[nodiscard]] Phase phase() const { return phase_; }
    [[nodiscard]] Try try_state() const { return try_state_; }
    [[nodiscard]] Release release_state() const { return release_state_; }

    /// Until when the lock is certainly ours: the quorum-th largest of the nodes' lower bounds.
    [[nodiscard]] TimePoint valid_until() const { return nth_largest_lower_bound(nodes_, terms_.quorum()); }

    /// Whether a key with our token may be, or may yet come to be, on some node.
    [[nodiscard]] bool may_have_left_a_key() const {
        return std::ranges::any_of(nodes_, [](const Node& node) { return node.unsettled || node.granted; });
    }

    /// Whether a refresh of a token that was acquired elsewhere may have prolonged the key.
    [[nodiscard]] bool may_have_been_refreshed() const {
        return std::ranges::any_of(nodes_, [](const Node& node) {
            return node.asked && node.verb == Verb::refresh && !node.said(Verdict::Answer::no);
        });
    }

    /// Why the last operation is not done.
    [[nodiscard]] const Verdict& verdict() const { return most_telling_verdict(nodes_); }

    [[nodiscard]] const LockKey& key() const { return key_; }
    [[nodiscard]] std::string_view token() const { return token_.view(); }
    [[nodiscard]] const LeaseTerms& terms() const { return terms_; }

    /// The token-checked delete of this tenure, for a request that wants to be recalled. By text, since nobody
    /// will be there to send it when the server does not know the digest.
    [[nodiscard]] Command recall_command() const {
        return make_command(Verb::release, scripts::Form::text, key_.view(), token_.view(), terms_.ttl);
    }

  private:
    // After the answer to a persistent release, ask this often again: on another connection, the release can
    // overtake a SET whose bytes are still on the way (3 of 20 trials with a stopped server).
    static constexpr int release_echoes = 3;
    static constexpr Duration echo_interval = std::chrono::milliseconds{150};
    static constexpr Duration first_release_retry = std::chrono::milliseconds{50};
    static constexpr Duration longest_release_retry = std::chrono::seconds{1};

    using Node = LeaseNode;

    void start_try(Phase phase, TimePoint deadline, bool last) {
        phase_ = phase;
        try_state_ = Try::pending;
        deadline_ = deadline;
        last_ = last;
        for (auto& node : nodes_) {
            node.due = TimePoint::min();
            node.answered = false;
            node.repeated = false;
        }
    }

    [[nodiscard]] Request make_request(NodeIndex index, TimePoint now) {
        Node& node = nodes_[index];
        const Verb verb = next_verb(node);
        // First what may throw for want of memory: then the node still waits to be asked.
        Request request{.node = index,
                        .id = last_id_ + 1,
                        .verb = verb,
                        .command = make_command(verb, node.form, key_.view(), token_.view(), terms_.ttl),
                        .deadline = request_deadline(now),
                        .recall = last_ && phase_ == Phase::acquiring};
        if (verb == Verb::release) node.lower_bound = TimePoint::min();
        node.verb = verb;
        node.due.reset();
        node.in_flight = ++last_id_;
        node.sent_at = now;
        node.deadline = request.deadline;
        node.asked = true;
        return request;
    }

    [[nodiscard]] Verb next_verb(const Node& node) const {
        if (phase_ == Phase::releasing) return Verb::release;
        if (phase_ == Phase::held || phase_ == Phase::resuming) return Verb::refresh;
        // Once asked, the key may hold our token already, or the holder's time left is worth knowing.
        return node.asked ? Verb::claim : Verb::set;
    }

    [[nodiscard]] Deadline request_deadline(TimePoint now) const {
        if (phase_ == Phase::held) {
            return std::min(saturating_add(now, terms_.refresh_timeout()), valid_until());
        }
        return std::min(saturating_add(now, terms_.operation_timeout), deadline_);
    }

    /// Returns false if the node will be asked again at once.
    bool apply(Node& node, TimePoint now) {
        if (node.is_acquire()) node.note_acquire();
        if (node.verb == Verb::release) node.note_release(release_begun_, valid_before_release_);
        if (repeat_at_once(node, now)) return false;
        node.answered = true;
        switch (phase_) {
            case Phase::acquiring:
            case Phase::resuming:
                if (node.verb == Verb::refresh) node.note_refresh(terms_.validity());
                if (node.said(Verdict::Answer::yes)) node.raise(terms_.validity());
                settle_try(now);
                break;
            case Phase::held:
                node.note_refresh(terms_.validity());
                plan_refresh(node, now);
                if (quorum_is_impossible()) lose();
                break;
            case Phase::releasing:
                plan_release(node, now);
                settle_release();
                break;
            case Phase::idle:
            case Phase::lost:
            case Phase::over:
                break;
        }
        return true;
    }

    bool repeat_at_once(Node& node, TimePoint now) const {
        if (phase_ == Phase::lost || !node.worth_repeating(now)) return false;
        node.repeated = true;
        node.due = now;
        return true;
    }

    void settle_try(TimePoint now) {
        if (try_state_ != Try::pending) return;
        std::size_t answered = 0;
        std::size_t yes = 0;
        std::size_t no = 0;
        for (const auto& node : nodes_) {
            if (!node.answered) continue;
            ++answered;
            if (node.said(Verdict::Answer::yes)) ++yes;
            if (node.said(Verdict::Answer::no)) ++no;
        }
        const auto can_refuse = nodes_.size() - terms_.quorum();
        if (yes >= terms_.quorum()) {
            grant(now);
        } else if (no > can_refuse) {
            end_try(Try::refused);
        } else if (answered - yes > can_refuse) {
            end_try(Try::failed);
        }
    }

    void grant(TimePoint now) {
        if (now >= valid_until()) return too_late();
        held_since_ = now;
        phase_ = Phase::held;
        end_try(Try::granted);
        for (auto& node : nodes_) plan_refresh(node, now);
    }

    // Granted, but so late that nothing of the validity is left. The key is ours on the server all the same:
    // it has to be claimed again or released.
    void too_late() {
        for (auto& node : nodes_) {
            node.unsettled = node.unsettled || node.granted;
            node.verdict = {
                .answer = Verdict::Answer::failed,
                .code = Errc::lease_lost,
                .detail = "it was granted too late: the lease had run out before the answer came"};
        }
        end_try(Try::failed);
    }

    void end_try(Try result) {
        try_state_ = result;
        for (auto& node : nodes_) node.due.reset();
        if (phase_ == Phase::resuming && result == Try::refused) phase_ = Phase::lost;
    }

    // By an absolute schedule: a third of the TTL after the last success was sent. After a failure soon again,
    // as long as the lease lasts; one that no retry can mend is asked less often.
    void plan_refresh(Node& node, TimePoint now) {
        node.due.reset();
        if (!terms_.auto_refresh || node.not_ours) return;
        TimePoint due = now;
        switch (node.verdict.answer) {
            case Verdict::Answer::yes:
                due = saturating_add(node.sent_at, terms_.refresh_interval());
                due -= jitter_.up_to(terms_.refresh_interval() / 10);
                break;
            case Verdict::Answer::failed:
            case Verdict::Answer::unknown: {
                const Duration gap =
                    node.verdict.permanent ? terms_.ttl / 6 : terms_.refresh_retry_interval();
                due = std::max(saturating_add(node.sent_at, gap), saturating_add(now, gap / 2));
                break;
            }
            case Verdict::Answer::no:
            case Verdict::Answer::no_script:
                break;
        }
        if (terms_.max_hold && due >= saturating_add(held_since_, *terms_.max_hold)) return;
        node.due = due;
    }

    [[nodiscard]] bool quorum_is_impossible() const {
        const auto gone = static_cast<std::size_t>(std::ranges::count_if(nodes_, &Node::not_ours));
        return gone > nodes_.size() - terms_.quorum();
    }

    void lose() {
        phase_ = Phase::lost;
        for (auto& node : nodes_) node.due.reset();
    }

    void plan_release(Node& node, TimePoint now) {
        const bool definite =
            node.verb == Verb::release && (node.said(Verdict::Answer::yes) || node.said(Verdict::Answer::no));
        if (node.verb != Verb::release) {  // an acquire or refresh that was under way when the release came
            ask_again_at(node, now);
        } else if (definite && node.echoes > 0) {
            --node.echoes;
            ask_again_at(node, saturating_add(now, echo_interval));
        } else if (!definite && persistent_) {
            ask_again_at(node, saturating_add(now, node.retry_interval));
            node.retry_interval = std::min(node.retry_interval * 2, longest_release_retry);
        }
    }

    void ask_again_at(Node& node, TimePoint at) const {
        if (at >= deadline_) return;
        node.answered = false;
        node.repeated = false;
        node.due = at;
    }

    void settle_release() {
        if (!std::ranges::all_of(nodes_, &Node::answered)) return;
        phase_ = Phase::over;
        release_state_ = result_of_release(nodes_, terms_.quorum());
    }

    LockKey key_;
    kunci::detail::SmallBytes<40> token_;
    LeaseTerms terms_;
    Jitter jitter_;
    std::vector<Node> nodes_;

    Phase phase_ = Phase::idle;
    Try try_state_ = Try::pending;
    Release release_state_ = Release::pending;
    TimePoint deadline_ = TimePoint::max();  // of the try or the release
    bool last_ = false;
    bool persistent_ = false;
    TimePoint held_since_;
    TimePoint resume_until_ = TimePoint::max();
    TimePoint release_begun_;
    std::optional<TimePoint> valid_before_release_;
    std::uint64_t last_id_ = 0;
};

}  // namespace kunci::protocol
