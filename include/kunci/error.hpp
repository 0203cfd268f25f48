#pragma once

#include <kunci/detail/immortal.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

namespace kunci {

/// Why an operation did not end as asked. Each value is one thing that a caller may want to act on.
enum class Errc {
    /// Somebody else holds the lock, and `wait_timeout` has passed.
    lock_held = 1,
    /// The wait was ended through `LockOptions::cancel`.
    cancelled,
    /// No connection to the server could be made, or it was not used: nothing has been executed.
    unreachable,
    /// The command went out and no answer came: it may or may not have been executed.
    maybe_executed,
    /// The server answered with an error (its code word and text are in the exception).
    server_refused,
    /// The server does not let this user do it: wrong or missing password, or an ACL rule.
    not_permitted,
    /// Client and server do not fit together: a setting must be changed, retrying cannot help.
    misconfigured,
    /// The lease ran out before the operation ended, or the server said that the lock is not ours any more.
    lease_lost,
};

/// The category of `Errc`; its name is "kunci".
[[nodiscard]] inline const std::error_category& error_category() noexcept {
    class Category final : public std::error_category {
        [[nodiscard]] const char* name() const noexcept override { return "kunci"; }
        [[nodiscard]] std::string message(int value) const override {
            switch (static_cast<Errc>(value)) {
                case Errc::lock_held:
                    return "the lock is held by somebody else";
                case Errc::cancelled:
                    return "the wait for the lock was cancelled";
                case Errc::unreachable:
                    return "the server cannot be reached; nothing was executed";
                case Errc::maybe_executed:
                    return "no answer came; the command may have been executed";
                case Errc::server_refused:
                    return "the server answered with an error";
                case Errc::not_permitted:
                    return "the server does not permit it to this user";
                case Errc::misconfigured:
                    return "client and server are not configured to fit together";
                case Errc::lease_lost:
                    return "the lease has run out";
            }
            return "unknown kunci error";
        }
    };
    static detail::Immortal<Category> category;
    return category.value;
}

[[nodiscard]] inline std::error_code make_error_code(Errc e) noexcept {
    return {static_cast<int>(e), error_category()};
}

}  // namespace kunci

template <>
struct std::is_error_code_enum<kunci::Errc> : std::true_type {};

namespace kunci {

/// The root of everything that kunci throws about the world; bad arguments throw `std::invalid_argument`.
/// `code()` compares with `Errc`; `what()` names the key and the reason, never the secret token or a
/// password.
class Error : public std::system_error {
  public:
    using std::system_error::system_error;
};

/// Somebody else holds the lock, and the wait, if any, is over. Nothing of this attempt is left on the
/// server.
class LockAcquisitionFailed : public Error {
  public:
    LockAcquisitionFailed(const std::string& what, std::optional<std::chrono::milliseconds> holder_ttl,
                          std::size_t attempts)
        : Error{Errc::lock_held, what}, holder_ttl_{holder_ttl}, attempts_{attempts} {}

    /// How long the holder's lock would have lived on, unrefreshed, when last asked. Empty where that is not
    /// known: the key has no expiry, or it went away between the two commands.
    [[nodiscard]] std::optional<std::chrono::milliseconds> holder_ttl() const noexcept { return holder_ttl_; }

    /// How many times the lock was asked for.
    [[nodiscard]] std::size_t attempts() const noexcept { return attempts_; }

  private:
    std::optional<std::chrono::milliseconds> holder_ttl_;
    std::size_t attempts_;
};

/// The wait was ended through `LockOptions::cancel`; nothing of it is left on the server.
class WaitCancelled : public Error {
  public:
    explicit WaitCancelled(const std::string& what) : Error{Errc::cancelled, what} {}
};

/// The network failed: `Errc::unreachable` (nothing was executed) or `Errc::maybe_executed` (unknown).
class ConnectionError : public Error {
  public:
    using Error::Error;
};

/// The server answered with an error: `Errc::server_refused`, `not_permitted` or `misconfigured`.
class ServerError : public Error {
  public:
    ServerError(Errc code, const std::string& what, std::string code_word)
        : Error{code, what}, code_word_{std::move(code_word)} {}

    /// The first word of the server's answer (READONLY, OOM, NOPERM ...); empty where the server said
    /// nothing.
    [[nodiscard]] const std::string& code_word() const noexcept { return code_word_; }

  private:
    std::string code_word_;
};

/// The lock was granted, but so late that nothing of the lease was left.
class LeaseLost : public Error {
  public:
    explicit LeaseLost(const std::string& what) : Error{Errc::lease_lost, what} {}
};

}  // namespace kunci
