#pragma once

#include <kunci/error.hpp>
#include <kunci/protocol/verdict.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

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

/// `doing` is "acquire", "release" or "refresh".
[[nodiscard]] inline Failure failure_of(std::string_view doing, std::string_view key,
                                        const protocol::Verdict& verdict, Errc code) {
    Failure failure{.code = code, .detail = verdict.detail, .code_word = verdict.code_word};
    failure.what = "kunci: cannot " + std::string{doing} + ' ' + printable(key);
    if (!verdict.detail.empty()) failure.what += ": " + verdict.detail;
    return failure;
}

[[noreturn]] inline void raise(const Failure& failure) {
    switch (failure.code) {
        case Errc::lock_held:
            throw LockAcquisitionFailed{failure.what, failure.holder_ttl, failure.attempts};
        case Errc::cancelled:
            throw WaitCancelled{failure.what};
        case Errc::lease_lost:
            throw LeaseLost{failure.what};
        case Errc::unreachable:
        case Errc::maybe_executed:
            break;
        case Errc::server_refused:
        case Errc::not_permitted:
        case Errc::misconfigured:
            throw ServerError{failure.code, failure.what, failure.code_word};
    }
    throw ConnectionError{failure.code, failure.what};
}

}  // namespace kunci::driver
