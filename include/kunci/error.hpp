#pragma once

#include <kunci/errc.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace kunci {

/// The root of everything that kunci throws about the world; bad arguments throw `std::invalid_argument`.
/// `code()` compares with `Errc`, a group included; `what()` names the key and the reason, never the secret token or a
/// password.
class Error : public std::system_error {
  public:
    Error(Errc code, const std::string& what) : std::system_error{make_error_code(code), what} {}

    /// The code as the enumeration, for a `switch`.
    [[nodiscard]] Errc errc() const noexcept { return static_cast<Errc>(code().value()); }
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

/// The network failed: a code of the group `Errc::unreachable` (nothing was executed) or
/// `Errc::maybe_executed` (unknown).
class ConnectionError : public Error {
  public:
    using Error::Error;
};

/// The server answered with an error: a code of the group `Errc::server_refused`, `not_permitted` or
/// `misconfigured`.
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
