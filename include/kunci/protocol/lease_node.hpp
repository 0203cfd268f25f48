#pragma once

#include <kunci/connection/outcome.hpp>
#include <kunci/error.hpp>
#include <kunci/protocol/lease_states.hpp>
#include <kunci/protocol/verdict.hpp>
#include <kunci/scripts/script.hpp>
#include <kunci/time.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace kunci::protocol {

/// What a lease knows of one node, and what one answer changes in it.
struct LeaseNode {
    TimePoint lower_bound = TimePoint::min();  ///< The node certainly holds our token until then.

    // The request that is under way, or the last one.
    std::uint64_t in_flight = 0;  ///< The id of the request without an answer, or 0.
    Verb verb = Verb::set;
    scripts::Form form = scripts::Form::digest;
    TimePoint sent_at;
    TimePoint deadline;
    Verdict verdict;

    // The plan.
    std::optional<TimePoint> due;  ///< When to ask next.
    bool answered = false;         ///< In this try or release.
    bool repeated = false;         ///< In this try, refresh or release: asked again after an unknown outcome.
    int echoes = 0;                ///< How often to ask for the release again after its answer.
    Duration retry_interval{0};    ///< Before a release is tried again.

    // The tenure so far.
    bool asked = false;              ///< A command of this tenure may have reached it.
    bool granted = false;            ///< It said last that the key is ours.
    bool unsettled = false;          ///< An acquire may have been executed, or may yet be.
    bool not_ours = false;           ///< It said so while the lease was held.
    bool released = false;           ///< This tenure has certainly deleted the key.
    bool release_unsettled = false;  ///< A release may have been executed, or may yet be.

    [[nodiscard]] bool said(Verdict::Answer answer) const { return verdict.answer == answer; }

    /// The key lives for the TTL from some instant after the request was sent, so we may believe in it for the
    /// validity from the instant before that. An earlier bound that reaches further stays true.
    void raise(Duration validity) { lower_bound = std::max(lower_bound, saturating_add(sent_at, validity)); }

    /// Nobody will bring the outcome of the request that is under way.
    void forget_request() {
        if (in_flight != 0 && is_acquire()) unsettled = true;
        in_flight = 0;
    }

    /// Notes the outcome of the request that was under way. Returns false if it must be sent again at once, since
    /// the server wants to see the text of the script.
    bool take_answer(const Outcome& outcome, std::string_view secret) {
        in_flight = 0;
        Verdict answer = interpret(verb, outcome, secret);
        if (answer.answer == Verdict::Answer::no_script && form == scripts::Form::digest) {
            form = scripts::Form::text;
            return false;
        }
        if (answer.answer == Verdict::Answer::no_script) {
            answer = {.answer = Verdict::Answer::failed,
                      .code = Errc::misconfigured,
                      .permanent = true,
                      .detail = "NOSCRIPT in answer to the text of a script",
                      .code_word = "NOSCRIPT"};
        }
        form = scripts::Form::digest;
        verdict = std::move(answer);
        note_doubt();
        return true;
    }

    [[nodiscard]] bool is_acquire() const { return verb == Verb::set || verb == Verb::claim; }

    void note_acquire() {
        switch (verdict.answer) {
            case Verdict::Answer::yes:
                granted = true;
                break;
            case Verdict::Answer::no:
                granted = false;
                break;
            case Verdict::Answer::unknown:
                unsettled = true;
                break;
            case Verdict::Answer::failed:
            case Verdict::Answer::no_script:
                break;
        }
    }

    void note_refresh(Duration validity) {
        if (said(Verdict::Answer::yes)) {
            granted = true;
            repeated = false;
            raise(validity);
        } else if (said(Verdict::Answer::no)) {
            granted = false;
            not_ours = true;
            lower_bound = TimePoint::min();
        }
    }

    /// `begun`: when the release was first asked for; `valid_before`: until when the lease was valid then, if
    /// that is known.
    void note_release(TimePoint begun, std::optional<TimePoint> valid_before) {
        switch (verdict.answer) {
            case Verdict::Answer::yes:
                released = true;
                break;
            case Verdict::Answer::no:
                if (release_unsettled) settle_unsettled_release(begun, valid_before);
                break;
            case Verdict::Answer::unknown:
                release_unsettled = true;
                break;
            case Verdict::Answer::failed:
            case Verdict::Answer::no_script:
                break;
        }
    }

    /// The key is gone, and an earlier release of ours had no answer. By containment the key was certainly ours
    /// while the lease was valid, so if it still was when this release was sent, the earlier one took it away. If
    /// the lease was over when the first one was asked for, it does not matter. In between, nobody can know.
    void settle_unsettled_release(TimePoint begun, std::optional<TimePoint> valid_before) {
        release_unsettled = false;
        if (valid_before && sent_at < *valid_before) {
            released = true;
        } else if (!valid_before || begun < *valid_before) {
            verdict = {.answer = Verdict::Answer::unknown,
                       .permanent = true,
                       .detail = "it is free, by an attempt whose answer was lost or because it had expired"};
        }
    }

    /// A failure that certainly did nothing does not undo the doubt of an earlier attempt.
    void note_doubt() {
        const bool doubt =
            repeated || (is_acquire() && unsettled) || (verb == Verb::release && release_unsettled);
        if (doubt && said(Verdict::Answer::failed) && group_of(verdict.code) == Errc::unreachable) {
            verdict.code = Errc::maybe_executed;
        }
    }

    /// An unknown outcome before the deadline is a broken connection, most often one that the server had closed
    /// while it was idle. Every verb may be repeated; once is enough to tell that from a server in trouble.
    [[nodiscard]] bool worth_repeating(TimePoint now) const {
        return said(Verdict::Answer::unknown) && !verdict.permanent && !repeated && now < deadline;
    }
};

/// The `n`-th largest of the nodes' lower bounds, from 1: until then at least `n` nodes hold our token.
[[nodiscard]] inline TimePoint nth_largest_lower_bound(const std::vector<LeaseNode>& nodes, std::size_t n) {
    if (nodes.size() == 1) return nodes.front().lower_bound;
    std::vector<TimePoint> bounds(nodes.size());
    std::ranges::transform(nodes, bounds.begin(), &LeaseNode::lower_bound);
    const auto nth = bounds.begin() + static_cast<std::ptrdiff_t>(n - 1);
    std::ranges::nth_element(bounds, nth, std::greater{});
    return *nth;
}

/// What has become of a release that every node has answered.
[[nodiscard]] inline LeaseRelease result_of_release(const std::vector<LeaseNode>& nodes, std::size_t quorum) {
    const auto released = static_cast<std::size_t>(std::ranges::count_if(nodes, &LeaseNode::released));
    const auto not_ours = static_cast<std::size_t>(std::ranges::count_if(nodes, [](const LeaseNode& node) {
        return !node.released && (!node.asked || node.said(Verdict::Answer::no));
    }));
    if (released >= quorum) return LeaseRelease::released;
    return not_ours > nodes.size() - quorum ? LeaseRelease::not_ours : LeaseRelease::unknown;
}

/// The verdict that tells best why something is not done: that of the first node that failed, else that of the
/// first that refused. REQUIRES: at least one node.
[[nodiscard]] inline const Verdict& most_telling_verdict(const std::vector<LeaseNode>& nodes) {
    const auto failed = std::ranges::find_if(nodes, [](const LeaseNode& node) {
        return node.asked && !node.said(Verdict::Answer::yes) && !node.said(Verdict::Answer::no);
    });
    if (failed != nodes.end()) return failed->verdict;
    const auto refused =
        std::ranges::find_if(nodes, [](const LeaseNode& node) { return node.said(Verdict::Answer::no); });
    return refused != nodes.end() ? refused->verdict : nodes.front().verdict;
}

}  // namespace kunci::protocol
