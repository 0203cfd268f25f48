#pragma once

#include <kunci/connection/outcome.hpp>
#include <kunci/connection/server_error.hpp>
#include <kunci/error.hpp>
#include <kunci/time.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace kunci::protocol {

/// What a lease asks of one node.
enum class Verb {
    set,    ///< The plain `SET NX`: take it if it is free.
    claim,  ///< The script: mine? extend. Free? take. Else refused. Safe after an attempt of unknown outcome.
    refresh,  ///< Extend if it is ours.
    release,  ///< Delete if it is ours.
};

/// What one answer means for a lock.
struct Verdict {
    enum class Answer {
        yes,        ///< Done: the key is ours (or, for a release, was ours and is gone).
        no,         ///< Refused: it is somebody else's, or no longer ours.
        failed,     ///< Certainly not executed.
        unknown,    ///< Perhaps executed, perhaps later.
        no_script,  ///< Certainly not executed: the server wants the script's text.
    };

    Answer answer = Answer::unknown;
    /// For failed and unknown.
    Errc code = Errc::maybe_executed;
    /// For failed and unknown: asking again cannot help unless somebody changes something.
    bool permanent = false;
    /// The server's or the operating system's words.
    std::string detail = {};
    /// The first word of a server error; otherwise empty.
    std::string code_word = {};
    /// With `no` to a claim: how long the holder's key lives on. Empty if it has no expiry.
    std::optional<Duration> holder_ttl = std::nullopt;
    /// Who gave the answer, from 0.
    std::size_t node = 0;
    /// It was read from a reply of the server, which does not know its own address.
    bool in_reply = false;
};

namespace detail {

/// Whether asking again cannot help unless somebody changes a setting.
[[nodiscard]] constexpr bool is_permanent(Errc code) noexcept {
    return group_of(code) == Errc::not_permitted || group_of(code) == Errc::misconfigured;
}

[[nodiscard]] inline Verdict interpret_error(const std::string& text) {
    const auto word = server_error_word(text);
    if (word == "NOSCRIPT") return {.answer = Verdict::Answer::no_script};
    // Another type under our name is not our token, so it is somebody else's key.
    if (word == "WRONGTYPE") return {.answer = Verdict::Answer::no, .detail = text};
    // Our scripts write last, so a command that an ACL forbids in them has stopped them before.
    if (text.find("user executing the script can't run") != std::string::npos) {
        return {.answer = Verdict::Answer::failed,
                .code = Errc::acl_denied,
                .permanent = true,
                .detail = text,
                .code_word = "NOPERM"};
    }
    if (const auto code = not_executed_error(word)) {
        return {Verdict::Answer::failed, *code, is_permanent(*code), text, std::string{word}, {}};
    }
    return {Verdict::Answer::unknown, Errc::server_refused, true, text, std::string{word}, {}};
}

[[nodiscard]] inline Verdict unexpected_reply() {
    return {
        Verdict::Answer::unknown, Errc::misconfigured, true, "the reply is not one that Redis gives", {}, {}};
}

[[nodiscard]] inline Verdict interpret_claim(const Reply& reply) {
    const auto& parts = reply.elements();
    if (parts.size() != 2 || !parts[0].is(Reply::Kind::integer)) return unexpected_reply();
    if (parts[0].integer() == 1) return {.answer = Verdict::Answer::yes};
    Verdict verdict{.answer = Verdict::Answer::no};
    constexpr std::int64_t most = Duration::max() / std::chrono::milliseconds{1};
    if (const auto ms = parts[1].integer(); ms >= 0) {
        verdict.holder_ttl = std::chrono::milliseconds{std::min(ms, most)};
    }
    return verdict;
}

[[nodiscard]] inline Verdict interpret_reply(Verb verb, const Reply& reply) {
    if (reply.is(Reply::Kind::error)) return interpret_error(reply.text());
    const auto yes_if = [](bool ours) {
        return Verdict{.answer = ours ? Verdict::Answer::yes : Verdict::Answer::no};
    };
    switch (verb) {
        case Verb::set:
            if (reply.is(Reply::Kind::nil)) return yes_if(false);
            if (reply.is(Reply::Kind::status) && reply.text() == "OK") return yes_if(true);
            break;
        case Verb::claim:
            return interpret_claim(reply);
        case Verb::refresh:
            if (!reply.is(Reply::Kind::integer)) break;
            if (reply.integer() != -2) return yes_if(true);
            return {.answer = Verdict::Answer::no,
                    .detail =
                        "the server no longer holds it for us: the key was deleted, evicted, taken, or "
                        "lost in a restart or failover"};
        case Verb::release:
            if (reply.is(Reply::Kind::integer)) return yes_if(reply.integer() == 1);
            break;
    }
    return unexpected_reply();
}

/// Redis repeats the arguments of a command that it does not know: the secret must not get into a message.
[[nodiscard]] inline std::string without_secret(std::string text, std::string_view secret) {
    text.resize(std::min(text.size(), text.find(", with args beginning with")));
    for (auto at = text.find(secret); at != std::string::npos; at = text.find(secret, at)) {
        text.replace(at, secret.size(), "<token>");
        at += std::string_view{"<token>"}.size();
    }
    return text;
}

}  // namespace detail

/// Reads an outcome: the one place that knows which answers leave it open whether a command was executed.
/// What it quotes of the server's words never contains `secret`, the token.
[[nodiscard]] inline Verdict interpret(Verb verb, const Outcome& outcome, std::string_view secret) {
    if (outcome.has_reply()) {
        Verdict verdict = detail::interpret_reply(verb, outcome.reply());
        verdict.in_reply = true;
        if (!verdict.detail.empty())
            verdict.detail = detail::without_secret(std::move(verdict.detail), secret);
        return verdict;
    }
    const Fault& fault = outcome.fault();
    Verdict verdict{.code = fault.code, .detail = fault.message, .code_word = fault.code_word};
    if (fault.delivery == Fault::Delivery::not_sent) {
        verdict.answer = Verdict::Answer::failed;
        verdict.permanent = detail::is_permanent(fault.code);
    }
    return verdict;
}

}  // namespace kunci::protocol
