#pragma once

#include <kunci/client_options.hpp>
#include <kunci/clock.hpp>
#include <kunci/detail/per_process.hpp>
#include <kunci/detail/random_bytes.hpp>
#include <kunci/driver/background_releaser.hpp>
#include <kunci/driver/checks.hpp>
#include <kunci/driver/failure.hpp>
#include <kunci/driver/loss_timer.hpp>
#include <kunci/driver/transport.hpp>
#include <kunci/lock_key.hpp>
#include <kunci/lock_options.hpp>
#include <kunci/lock_token.hpp>
#include <kunci/protocol/acquisition.hpp>
#include <kunci/protocol/lease.hpp>

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace kunci::driver {

/// What all locks of one client share: the nodes, the clock, the options and the background helpers; and the
/// blocking operations, which do nothing but run the state machines. Thread-safe.
class LockClient {
  public:
    LockClient(std::shared_ptr<Transport> transport, std::size_t nodes, Clock& clock, ClientOptions options)
        : transport_{std::move(transport)},
          nodes_{nodes},
          clock_{clock},
          options_{std::move(options)},
          helpers_{
              [this] { return std::make_unique<Helpers>(transport_, clock_, options_.operation_timeout); }} {
        validate(options_);
    }

    using Acquired = std::variant<protocol::Lease, Failure>;
    /// Whether the lock was ours until then.
    using Released = std::variant<bool, Failure>;
    /// Until when it is valid now, or nothing if it is not ours any more.
    using Refreshed = std::variant<std::optional<TimePoint>, Failure>;

    /// Runs an acquisition to its end. `ask_holder_ttl`: a refusal tells how long the holder's key lives on,
    /// even where that takes a command of its own. Throws `std::invalid_argument` for bad arguments.
    [[nodiscard]] Acquired acquire(std::string_view key, const LockOptions& options, bool ask_holder_ttl) {
        protocol::LeaseTerms terms = terms_of(options_, options);
        terms.nodes = nodes_;
        const kunci::detail::RandomToken token;
        protocol::Lease lease{LockKey{options_.key_prefix, key}, token.view(), terms, seed_of(token, 0)};
        const TimePoint started = clock_.now();
        protocol::Acquisition acquisition{
            lease, {started, options.wait_timeout, options.retry_interval}, seed_of(token, 1)};
        run(acquisition, lease, options.cancel, started);
        if (acquisition.result() == protocol::Acquisition::Result::granted) {
            tell_acquired(lease, acquisition, started);
            return Acquired{std::move(lease)};
        }
        Failure failure = explain(acquisition, lease, ask_holder_ttl);
        tell_not_acquired(lease, failure, started);
        if (lease.may_have_left_a_key()) releaser().take(std::move(lease));
        return failure;
    }

    /// Releases a tenure that is known by its token only. `again`: it was tried before.
    [[nodiscard]] Released release(const LockToken& token, bool again) {
        protocol::Lease lease = known(token, known_token_terms());
        const TimePoint now = clock_.now();
        lease.release_known(now, saturating_add(now, options_.operation_timeout), validity_of(token), again);
        Released result = finish_release(lease);
        tell_released(lease.key(), result, Duration::zero());
        return result;
    }

    /// Drives a release that has been begun to its end.
    [[nodiscard]] Released finish_release(protocol::Lease& lease) {
        while (const auto request = lease.next_request(clock_.now())) perform_on(lease, *request);
        switch (lease.release_state()) {
            case protocol::Lease::Release::released:
                return true;
            case protocol::Lease::Release::not_ours:
                return false;
            case protocol::Lease::Release::unknown:
            case protocol::Lease::Release::pending:
                break;
        }
        return failure("release", lease.key().view(), lease.verdict(), code_of_release(lease.verdict()));
    }

    void tell_released(const LockKey& key, const Released& result, Duration held_for) const {
        Event event{.kind = Event::Kind::released, .key = key.view(), .held_for = held_for};
        if (const auto* failure = std::get_if<Failure>(&result)) {
            event.kind = Event::Kind::release_failed;
            event.error = make_error_code(failure->code);
            event.detail = failure->detail;
        } else if (!std::get<bool>(result)) {
            event.error = make_error_code(Errc::lease_lost);
        }
        tell(event);
    }

    /// Raises the remaining TTL of a tenure that is known by its token.
    [[nodiscard]] Refreshed refresh(const LockToken& token, TimeSpan ttl) {
        const protocol::LeaseTerms terms = terms_of(options_, ttl);
        const TimePoint now = clock_.now();
        protocol::Lease lease = known(token, terms);
        lease.resume(saturating_add(now, options_.operation_timeout), validity_of(token));
        while (const auto request = lease.next_request(clock_.now())) perform_on(lease, *request);
        switch (lease.try_state()) {
            case protocol::Lease::Try::granted:
                return std::optional{std::max(lease.valid_until(), token.valid_until())};
            case protocol::Lease::Try::refused:
                // Over by our clock, though the server may have prolonged it a moment ago.
                if (lease.may_have_been_refreshed()) releaser().take(std::move(lease));
                return std::optional<TimePoint>{};
            case protocol::Lease::Try::failed:
            case protocol::Lease::Try::pending:
                break;
        }
        return failure("refresh", token.key(), lease.verdict(), lease.verdict().code);
    }

    /// Tells the observer, outside of every lock; what it throws is dropped.
    void tell(const Event& event) const noexcept {
        if (options_.observer == nullptr) return;
        try {
            options_.observer->on_event(event);
        } catch (...) {  // NOLINT(bugprone-empty-catch): an observer must not disturb what it watches
        }
    }

    [[nodiscard]] Transport& transport() { return *transport_; }
    [[nodiscard]] Clock& clock() { return clock_; }
    [[nodiscard]] const ClientOptions& options() const { return options_; }
    [[nodiscard]] LossTimer& loss_timer() { return helpers_.get().loss_timer; }
    [[nodiscard]] BackgroundReleaser& releaser() { return helpers_.get().releaser; }

  private:
    // What has threads, which a forked child does not inherit.
    struct Helpers {
        Helpers(const std::shared_ptr<Transport>& transport, Clock& clock, Duration operation_timeout)
            : loss_timer{clock}, releaser{transport, clock, operation_timeout} {}
        void leave_to_parent() noexcept {}

        LossTimer loss_timer;
        BackgroundReleaser releaser;
    };

    void run(protocol::Acquisition& acquisition, const protocol::Lease& lease, const std::stop_token& cancel,
             TimePoint started) {
        Wakeup wakeup;
        const std::stop_callback wake_on_cancel{cancel, [&wakeup] { wakeup.signal(); }};
        bool told_waiting = false;
        while (acquisition.result() == protocol::Acquisition::Result::pending) {
            if (cancel.stop_requested()) {
                acquisition.cancel();
            } else if (const auto request = acquisition.next_request(clock_.now())) {
                const Outcome outcome = perform(*transport_, *request, lease);
                acquisition.on_outcome(request->node, request->id, outcome, clock_.now());
            } else {
                if (acquisition.waiting() && !std::exchange(told_waiting, true)) {
                    tell({.kind = Event::Kind::waiting,
                          .key = lease.key().view(),
                          .attempts = acquisition.attempts(),
                          .waited = clock_.now() - started});
                }
                clock_.sleep_until(wakeup, acquisition.wake_at());
            }
        }
    }

    void perform_on(protocol::Lease& lease, const protocol::Request& request) {
        const Outcome outcome = perform(*transport_, request, lease);
        lease.on_outcome(request.node, request.id, outcome, clock_.now());
    }

    [[nodiscard]] Failure failure(std::string_view doing, std::string_view key,
                                  const protocol::Verdict& verdict, Errc code) {
        return failure_of(doing, key, words_of(verdict, *transport_), verdict.code_word, code);
    }

    [[nodiscard]] Failure explain(const protocol::Acquisition& acquisition, const protocol::Lease& lease,
                                  bool ask_holder_ttl) {
        const auto key = lease.key().view();
        Failure why;
        switch (acquisition.result()) {
            case protocol::Acquisition::Result::refused: {
                why = failure("acquire", key, acquisition.verdict(), Errc::lock_held);
                auto ttl = acquisition.holder_ttl();
                if (!ttl && ask_holder_ttl) ttl = ask_ttl(key);
                if (ttl) {
                    why.holder_ttl = std::chrono::ceil<std::chrono::milliseconds>(*ttl);
                    why.what += ": its key lives on for " + std::to_string(why.holder_ttl->count()) + " ms";
                }
                break;
            }
            case protocol::Acquisition::Result::cancelled:
                why.code = Errc::cancelled;
                why.what = "kunci: gave up waiting for " + printable(key);
                break;
            case protocol::Acquisition::Result::failed:
            case protocol::Acquisition::Result::pending:
            case protocol::Acquisition::Result::granted:
                why = failure("acquire", key, acquisition.verdict(), acquisition.verdict().code);
                break;
        }
        why.attempts = acquisition.attempts();
        return why;
    }

    [[nodiscard]] static Errc code_of_release(const protocol::Verdict& verdict) {
        // The other nodes' votes may be missing although this one answered.
        const bool answered = verdict.answer == protocol::Verdict::Answer::yes ||
                              verdict.answer == protocol::Verdict::Answer::no;
        return answered ? Errc::maybe_executed : verdict.code;
    }

    [[nodiscard]] std::optional<Duration> ask_ttl(std::string_view key) {
        Command command{"PTTL"};
        command.add_key(key);
        const auto deadline = saturating_add(clock_.now(), options_.operation_timeout);
        try {
            const Outcome outcome = transport_->execute(0, command, deadline, nullptr);
            if (outcome.has_reply() && outcome.reply().integer() > 0) {
                return TimeSpan{std::chrono::milliseconds{outcome.reply().integer()}}.value();
            }
        } catch (...) {  // NOLINT(bugprone-empty-catch): it is a courtesy; the refusal is what counts
        }
        return std::nullopt;
    }

    /// Until when the token is valid, if that is known.
    [[nodiscard]] static std::optional<TimePoint> validity_of(const LockToken& token) {
        const bool known = token.valid_until() != TimePoint::min();
        return known ? std::optional{token.valid_until()} : std::nullopt;
    }

    [[nodiscard]] protocol::LeaseTerms known_token_terms() const {
        return {.drift_factor = options_.drift_factor, .operation_timeout = options_.operation_timeout};
    }

    [[nodiscard]] protocol::Lease known(const LockToken& token, protocol::LeaseTerms terms) const {
        terms.nodes = nodes_;
        terms.auto_refresh = false;
        return {LockKey::from_complete(token.key()), token.token(), terms, 0};
    }

    // Every tenure jitters differently; that its token is random is all that is used.
    [[nodiscard]] static std::uint64_t seed_of(const kunci::detail::RandomToken& token, std::size_t which) {
        std::uint64_t seed = 0;
        std::memcpy(&seed, token.view().data() + which * sizeof seed, sizeof seed);
        return seed;
    }

    void tell_acquired(const protocol::Lease& lease, const protocol::Acquisition& acquisition,
                       TimePoint started) const {
        if (options_.observer == nullptr) return;
        const TimePoint now = clock_.now();
        tell({.kind = Event::Kind::acquired,
              .key = lease.key().view(),
              .attempts = acquisition.attempts(),
              .waited = now - started,
              .validity_left = lease.valid_until() - now});
    }

    void tell_not_acquired(const protocol::Lease& lease, const Failure& failure, TimePoint started) const {
        if (options_.observer == nullptr) return;
        tell({.kind = failure.code == Errc::lock_held ? Event::Kind::refused : Event::Kind::failed,
              .key = lease.key().view(),
              .attempts = failure.attempts,
              .waited = clock_.now() - started,
              .error = make_error_code(failure.code),
              .detail = failure.detail});
    }

    std::shared_ptr<Transport> transport_;
    std::size_t nodes_;
    Clock& clock_;
    ClientOptions options_;
    kunci::detail::PerProcess<Helpers> helpers_;
};

}  // namespace kunci::driver
