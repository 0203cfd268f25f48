#pragma once

#include <kunci/driver/failure.hpp>
#include <kunci/driver/tenure.hpp>
#include <kunci/lock_token.hpp>
#include <kunci/time.hpp>

#include <memory>
#include <stop_token>
#include <system_error>
#include <utility>
#include <variant>

namespace kunci {

class LockOperations;

/// Holds a lock for a scope: keeps it alive in the background, says when it is lost, and releases it at the end.
///
/// Move-only. Obtained from `lock` or `try_lock`; it may be moved to another thread, and outlive the lock object
/// that it came from. `held`, `remaining`, `valid_until`, `stop_token`, `token` and `release` may be called from
/// several threads at once; moving and destroying may not run beside them. A guard that was moved from holds
/// nothing, and neither does one in a forked child: the tenure stays the parent's, which goes on keeping it alive.
class LockGuard {
  public:
    LockGuard(LockGuard&&) noexcept = default;

    /// Releases what this guard held before, as the destructor would.
    LockGuard& operator=(LockGuard&& other) noexcept {
        LockGuard taken{std::move(other)};
        std::swap(tenure_, taken.tenure_);
        return *this;
    }

    LockGuard(const LockGuard&) = delete;
    LockGuard& operator=(const LockGuard&) = delete;

    /// Stops the refresher and releases the lock. Never throws, and is back within one refresh that is under
    /// way (at most `ttl / 6` and `operation_timeout`) and one `operation_timeout`, whatever the server does;
    /// what could not be released by then goes on in the background, and ends with the TTL at the latest. If the
    /// loss is being told at this moment, it waits for the stop callbacks; these must not wait for it.
    ~LockGuard() {
        if (tenure_) tenure_->abandon();
    }

    /// Whether the lock is certainly ours at this instant: false from `valid_until()` on, and for ever once it
    /// was lost or released. It asks the clock, not the server, and depends on no thread.
    /// A process can be paused right behind this call: critical writes also need a check at the resource.
    [[nodiscard]] bool held() const { return tenure_ && tenure_->held(); }

    /// How much of the lease is left; 0 if it is not held.
    [[nodiscard]] Duration remaining() const { return tenure_ ? tenure_->remaining() : Duration::zero(); }

    /// The instant, of the lock's clock, up to which the lock is certainly ours unless it is refreshed again.
    [[nodiscard]] TimePoint valid_until() const {
        return tenure_ ? tenure_->valid_until() : TimePoint::min();
    }

    /// Stops when the lock is lost, not when it is released. Its callbacks run on the background thread of the
    /// client that tells every loss, so they must be quick: no I/O, no waiting for another thread. They may
    /// release or destroy this guard, which then goes on in the background.
    [[nodiscard]] std::stop_token stop_token() const {
        return tenure_ ? tenure_->stop_token() : std::stop_token{};
    }

    /// This tenure as a value. It holds the secret, and does not keep the lock.
    /// REQUIRES: the guard was not moved from.
    [[nodiscard]] LockToken token() const { return tenure_->token(); }

    /// Releases now. True: it was ours until now, and is free. False: it was not ours any more (expired, taken,
    /// or released before). When it returns or throws, `held()` is false, and no refresh of this tenure will
    /// ever be sent. Throws an `Error` if no answer tells which; then it may be called again.
    [[nodiscard]] bool release() {
        auto result = release_impl();
        if (const auto* failure = std::get_if<driver::Failure>(&result)) driver::raise(*failure);
        return std::get<bool>(result);
    }

    /// As release(), but reports through `error`, and then returns false. Throws only what memory throws.
    [[nodiscard]] bool release(std::error_code& error) {
        const auto result = release_impl();
        const auto* failure = std::get_if<driver::Failure>(&result);
        error = failure != nullptr ? make_error_code(failure->code) : std::error_code{};
        return failure == nullptr && std::get<bool>(result);
    }

  private:
    friend class LockOperations;

    explicit LockGuard(std::shared_ptr<driver::Tenure> tenure) : tenure_{std::move(tenure)} {}

    [[nodiscard]] driver::LockClient::Released release_impl() {
        if (!tenure_) return false;
        return tenure_->release();
    }

    std::shared_ptr<driver::Tenure> tenure_;
};

}  // namespace kunci
