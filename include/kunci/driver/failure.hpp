#pragma once

#include <kunci/driver/transport.hpp>
#include <kunci/error.hpp>
#include <kunci/protocol/verdict.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace kunci::driver {

/// Why an operation did not end as asked, before it is known whether the caller wants an exception.
struct Failure {
    Errc code = Errc::maybe_executed;
    std::string what = {};
    std::string detail = {};
    std::string code_word = {};
    std::optional<std::chrono::milliseconds> holder_ttl = std::nullopt;
    std::size_t attempts = 0;
};

/// A key for messages: what cannot be printed is escaped, what is long is cut.
[[nodiscard]] inline std::string printable(std::string_view key) {
    constexpr std::size_t longest = 80;
    constexpr std::string_view hex = "0123456789abcdef";
    std::string text = "\"";
    for (const char c : key.substr(0, longest)) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte >= 0x20 && byte < 0x7F && c != '"' && c != '\\') {
            text += c;
        } else {
            text += {'\\', 'x', hex[byte >> 4U], hex[byte & 15U]};
        }
    }
    return text + (key.size() > longest ? "\"..." : "\"");
}

/// What an answer says, and who said it: a fault names the address itself, a server cannot.
[[nodiscard]] inline std::string words_of(const protocol::Verdict& verdict, Transport& transport) {
    if (!verdict.in_reply || verdict.detail.empty()) return verdict.detail;
    const std::string address = transport.address(verdict.node);
    return address.empty() ? verdict.detail : "redis at " + address + ": " + verdict.detail;
}

/// `doing` is "acquire", "release" or "refresh"; `words` as `words_of` gives them.
[[nodiscard]] inline Failure failure_of(std::string_view doing, std::string_view key, std::string words,
                                        std::string code_word, Errc code) {
    Failure failure{.code = code, .detail = std::move(words), .code_word = std::move(code_word)};
    failure.what = "kunci: cannot " + std::string{doing} + ' ' + printable(key);
    if (!failure.detail.empty()) failure.what += ": " + failure.detail;
    return failure;
}

[[noreturn]] inline void raise(const Failure& failure) {
    switch (group_of(failure.code)) {
        case Errc::lock_held:
            throw LockAcquisitionFailed{failure.what, failure.holder_ttl, failure.attempts};
        case Errc::cancelled:
            throw WaitCancelled{failure.what};
        case Errc::lease_lost:
            throw LeaseLost{failure.what};
        case Errc::server_refused:
        case Errc::not_permitted:
        case Errc::misconfigured:
            throw ServerError{failure.code, failure.what, failure.code_word};
        default:  // unreachable, maybe_executed
            break;
    }
    throw ConnectionError{failure.code, failure.what};
}

}  // namespace kunci::driver
