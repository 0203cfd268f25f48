#pragma once

#include <kunci/connection/outcome.hpp>
#include <kunci/error.hpp>
#include <kunci/time.hpp>

#include <algorithm>
#include <array>
#include <chrono>
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
};

namespace detail {

struct ServerErrorRule {
    std::string_view word;
    Errc code;
    bool permanent;
};

// Errors that Redis gives before it touches a key; every other error leaves the outcome open.
// Source: the shared error replies in server.c and the checks in processCommand() of Redis 7.0.
inline constexpr std::array not_executed_errors{
    ServerErrorRule{"LOADING", Errc::server_refused, false},
    ServerErrorRule{"BUSY", Errc::server_refused, false},
    ServerErrorRule{"READONLY", Errc::server_refused, false},
    ServerErrorRule{"MASTERDOWN", Errc::server_refused, false},
    ServerErrorRule{"NOREPLICAS", Errc::server_refused, false},
    ServerErrorRule{"MISCONF", Errc::server_refused, false},
    ServerErrorRule{"OOM", Errc::server_refused, false},
    ServerErrorRule{"TRYAGAIN", Errc::server_refused, false},
    ServerErrorRule{"CLUSTERDOWN", Errc::server_refused, false},
    ServerErrorRule{"NOAUTH", Errc::not_permitted, true},
    ServerErrorRule{"WRONGPASS", Errc::not_permitted, true},
    ServerErrorRule{"NOPERM", Errc::not_permitted, true},
    ServerErrorRule{"MOVED", Errc::misconfigured, true},
    ServerErrorRule{"ASK", Errc::misconfigured, true},
    ServerErrorRule{"CROSSSLOT", Errc::misconfigured, true},
};

/// The word that tells the kind of a server error: the first one, except that Redis before 7.0 hides the error
/// of a command inside a script behind "ERR Error running script".
[[nodiscard]] inline std::string_view code_word(std::string_view text) {
    if (text.starts_with("ERR Error running script")) {
        if (text.find("WRONGTYPE ") != std::string_view::npos) return "WRONGTYPE";
        for (const auto& rule : not_executed_errors) {
            const auto at = text.find(rule.word);
            if (at != std::string_view::npos && text.substr(at + rule.word.size()).starts_with(' ')) {
                return rule.word;
            }
        }
    }
    return text.substr(0, text.find(' '));
}

[[nodiscard]] inline Verdict interpret_error(const std::string& text) {
    const auto word = code_word(text);
    if (word == "NOSCRIPT") return {.answer = Verdict::Answer::no_script};
    // Another type under our name is not our token, so it is somebody else's key.
    if (word == "WRONGTYPE") return {.answer = Verdict::Answer::no, .detail = text};
    // Our scripts write last, so a command that an ACL forbids in them has stopped them before.
    if (text.find("user executing the script can't run") != std::string::npos) {
        return {.answer = Verdict::Answer::failed,
                .code = Errc::not_permitted,
                .permanent = true,
                .detail = text,
                .code_word = "NOPERM"};
    }
    const auto rule = std::ranges::find(not_executed_errors, word, &ServerErrorRule::word);
    if (rule != not_executed_errors.end()) {
        return {Verdict::Answer::failed, rule->code, rule->permanent, text, std::string{word}, {}};
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
        if (!verdict.detail.empty())
            verdict.detail = detail::without_secret(std::move(verdict.detail), secret);
        return verdict;
    }
    const Fault& fault = outcome.fault();
    Verdict verdict{.code = fault.code, .detail = fault.message, .code_word = fault.code_word};
    if (fault.delivery == Fault::Delivery::not_sent) {
        verdict.answer = Verdict::Answer::failed;
        verdict.permanent = fault.code == Errc::not_permitted || fault.code == Errc::misconfigured;
    }
    return verdict;
}

}  // namespace kunci::protocol
