#pragma once

#include <kunci/driver/failure.hpp>
#include <kunci/driver/lock_client.hpp>
#include <kunci/driver/tenure.hpp>
#include <kunci/lock_guard.hpp>
#include <kunci/lock_options.hpp>
#include <kunci/lock_token.hpp>

#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

namespace kunci {

/// What can be done with locks, whatever nodes they live on: the interface of `DistributedLock`.
///
/// Thread-safe: one object serves all threads and all keys. Every function that has no `std::error_code&`
/// throws an `Error` when it cannot tell what it was asked, and all throw `std::invalid_argument` for options
/// or keys that make no sense, before anything is sent.
class LockOperations {
  public:
    LockOperations(const LockOperations&) = delete;
    LockOperations& operator=(const LockOperations&) = delete;

    // ---- with a guard: the usual way ------------------------------------------------------------------

    /// Takes the lock `key`, waiting for it up to `options.wait_timeout`.
    /// Throws `LockAcquisitionFailed` if somebody else holds it until then, `WaitCancelled` if the wait was
    /// cancelled, another `Error` if the server could not be asked.
    [[nodiscard]] LockGuard lock(std::string_view key, const LockOptions& options = {}) {
        return guard(value_or_raise(client_->acquire(key, options, true)));
    }

    /// As `lock`, but empty if somebody else holds it.
    [[nodiscard]] std::optional<LockGuard> try_lock(std::string_view key, const LockOptions& options = {}) {
        auto acquired = client_->acquire(key, options, false);
        if (is_refusal(acquired)) return std::nullopt;
        return guard(value_or_raise(std::move(acquired)));
    }

    /// As `lock`, but empty with the reason in `error`; `Errc::lock_held` if somebody else holds it.
    [[nodiscard]] std::optional<LockGuard> lock(std::string_view key, const LockOptions& options,
                                                std::error_code& error) {
        auto acquired = client_->acquire(key, options, false);
        if (!report(acquired, error)) return std::nullopt;
        return guard(std::get<protocol::Lease>(std::move(acquired)));
    }

    /// As `try_lock`: empty without an error if somebody else holds it.
    [[nodiscard]] std::optional<LockGuard> try_lock(std::string_view key, const LockOptions& options,
                                                    std::error_code& error) {
        auto result = lock(key, options, error);
        if (error == Errc::lock_held) error.clear();
        return result;
    }

    // ---- by hand: a token that may be stored and passed on ----------------------------------------------

    /// As `lock`, but nothing refreshes or releases it: the lock ends by `release`, or after the TTL.
    [[nodiscard]] LockToken acquire(std::string_view key, const LockOptions& options = {}) {
        return token(value_or_raise(client_->acquire(key, options, true)));
    }

    /// As `acquire`, but empty if somebody else holds it.
    [[nodiscard]] std::optional<LockToken> try_acquire(std::string_view key,
                                                       const LockOptions& options = {}) {
        auto acquired = client_->acquire(key, options, false);
        if (is_refusal(acquired)) return std::nullopt;
        return token(value_or_raise(std::move(acquired)));
    }

    /// As `acquire`, but empty with the reason in `error`; `Errc::lock_held` if somebody else holds it.
    [[nodiscard]] std::optional<LockToken> acquire(std::string_view key, const LockOptions& options,
                                                   std::error_code& error) {
        auto acquired = client_->acquire(key, options, false);
        if (!report(acquired, error)) return std::nullopt;
        return token(std::get<protocol::Lease>(acquired));
    }

    /// As `try_acquire`: empty without an error if somebody else holds it.
    [[nodiscard]] std::optional<LockToken> try_acquire(std::string_view key, const LockOptions& options,
                                                       std::error_code& error) {
        auto result = acquire(key, options, error);
        if (error == Errc::lock_held) error.clear();
        return result;
    }

    /// Gives the lock back. True: it was ours until now, and is free. False: it was not ours any more (expired,
    /// taken, or released before), and nothing was touched. If it throws, the same token can be released again,
    /// but it is burnt: the release may still come into effect, so the token cannot be refreshed any more.
    [[nodiscard]] bool release(LockToken& token) { return value_or_raise(released(token)); }

    /// As above, but reports through `error`, and then returns false.
    [[nodiscard]] bool release(LockToken& token, std::error_code& error) {
        const auto result = released(token);
        return report(result, error) && std::get<bool>(result);
    }

    /// As above, for a token that cannot note it: after this it must not be refreshed.
    [[nodiscard]] bool release(const LockToken& token) {
        return value_or_raise(client_->release(token, token.release_in_doubt_));
    }
    [[nodiscard]] bool release(const LockToken& token, std::error_code& error) {
        const auto result = client_->release(token, token.release_in_doubt_);
        return report(result, error) && std::get<bool>(result);
    }

    /// Raises the time the lock still lives to `ttl`; it never shortens it. True: it is ours, and `token` knows
    /// its new `valid_until()`. False: it is not ours any more; a tenure that is over is never revived. If it
    /// throws, the lease is what it was before, or longer.
    [[nodiscard]] bool refresh(LockToken& token, TimeSpan ttl) {
        return renew(token, value_or_raise(refreshed(token, ttl)));
    }

    /// As above, but reports through `error`, and then returns false.
    [[nodiscard]] bool refresh(LockToken& token, TimeSpan ttl, std::error_code& error) {
        const auto result = refreshed(token, ttl);
        return report(result, error) && renew(token, std::get<std::optional<TimePoint>>(result));
    }

    /// As above, for a token that cannot note its new validity.
    [[nodiscard]] bool refresh(const LockToken& token, TimeSpan ttl) {
        LockToken copy = token;
        return refresh(copy, ttl);
    }

    /// Throws `std::invalid_argument` if a lock with this key and these options would be refused.
    void validate(std::string_view key, const LockOptions& options) const {
        static_cast<void>(LockKey{client_->options().key_prefix, key});
        static_cast<void>(driver::terms_of(client_->options(), options));
    }

    /// The instant by the clock that `valid_until()` is told in.
    [[nodiscard]] TimePoint now() const { return client_->clock().now(); }

  protected:
    explicit LockOperations(std::shared_ptr<driver::LockClient> client) : client_{std::move(client)} {}
    LockOperations(LockOperations&&) noexcept = default;
    LockOperations& operator=(LockOperations&&) noexcept = default;
    ~LockOperations() = default;

  private:
    template <typename Value>
    [[nodiscard]] static Value value_or_raise(std::variant<Value, driver::Failure> result) {
        if (const auto* failure = std::get_if<driver::Failure>(&result)) driver::raise(*failure);
        return std::get<Value>(std::move(result));
    }

    /// Returns whether there is a value.
    template <typename Value>
    [[nodiscard]] static bool report(const std::variant<Value, driver::Failure>& result,
                                     std::error_code& error) {
        const auto* failure = std::get_if<driver::Failure>(&result);
        error = failure != nullptr ? make_error_code(failure->code) : std::error_code{};
        return failure == nullptr;
    }

    [[nodiscard]] static bool is_refusal(const driver::LockClient::Acquired& acquired) {
        const auto* failure = std::get_if<driver::Failure>(&acquired);
        return failure != nullptr && failure->code == Errc::lock_held;
    }

    [[nodiscard]] static LockToken token(const protocol::Lease& lease) {
        return {lease.key(), lease.token(), lease.valid_until()};
    }

    [[nodiscard]] driver::LockClient::Released released(LockToken& token) {
        token.burnt_ = true;
        auto result = client_->release(token, token.release_in_doubt_);
        const auto* failure = std::get_if<driver::Failure>(&result);
        token.release_in_doubt_ = failure != nullptr && (token.release_in_doubt_ ||
                                                         group_of(failure->code) == Errc::maybe_executed);
        return result;
    }

    [[nodiscard]] driver::LockClient::Refreshed refreshed(const LockToken& token, TimeSpan ttl) {
        if (token.burnt_) return std::optional<TimePoint>{};
        return client_->refresh(token, ttl);
    }

    static bool renew(LockToken& token, std::optional<TimePoint> valid_until) {
        if (valid_until) token = {LockKey::from_complete(token.key()), token.token(), *valid_until};
        return valid_until.has_value();
    }

    [[nodiscard]] LockGuard guard(protocol::Lease lease) const {
        LockGuard guard{std::make_shared<driver::Tenure>(client_, std::move(lease))};
        guard.tenure_->start();  // if there can be no thread, the guard releases the lock on the way out
        return guard;
    }

    std::shared_ptr<driver::LockClient> client_;
};

}  // namespace kunci
