#pragma once

#include <kunci/connection/reply.hpp>
#include <kunci/error.hpp>

#include <string>
#include <utility>
#include <variant>

namespace kunci {

/// Why there is no reply, told in the two words that a lock must know.
struct Fault {
    enum class Delivery {
        not_sent,        ///< Not a byte of the command went out: it has not been executed and never will be.
        maybe_executed,  ///< Bytes went out: it may have been executed, or may be executed later.
    };

    Delivery delivery = Delivery::maybe_executed;
    /// Of the group `unreachable` or `maybe_executed` for the network; of `server_refused`, `not_permitted`
    /// or `misconfigured` when the connection itself was refused (only with `not_sent`).
    Errc code = Errc::maybe_executed;
    /// What happened and at which address, for a human. Never a password, never a token.
    std::string message = {};
    /// The first word of the server's own answer where it refused the connection; otherwise empty.
    std::string code_word = {};

    [[nodiscard]] static Fault not_sent(Errc code, std::string message, std::string code_word = {}) {
        return {Delivery::not_sent, code, std::move(message), std::move(code_word)};
    }
    [[nodiscard]] static Fault maybe_executed(std::string message, Errc code = Errc::maybe_executed) {
        return {Delivery::maybe_executed, code, std::move(message), {}};
    }
};

/// What became of one command: the server's reply, or a fault. A value; not thread-safe.
class Outcome {
  public:
    Outcome(Reply reply) : value_{std::move(reply)} {}  // NOLINT: implicit, an outcome is either
    Outcome(Fault fault) : value_{std::move(fault)} {}  // NOLINT: implicit, an outcome is either

    [[nodiscard]] bool has_reply() const noexcept { return std::holds_alternative<Reply>(value_); }
    /// REQUIRES: has_reply().
    [[nodiscard]] const Reply& reply() const { return std::get<Reply>(value_); }
    /// REQUIRES: !has_reply().
    [[nodiscard]] const Fault& fault() const { return std::get<Fault>(value_); }

  private:
    std::variant<Reply, Fault> value_;
};

}  // namespace kunci
