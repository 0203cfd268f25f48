#pragma once

#include <kunci/connection/reply.hpp>
#include <kunci/testing/keyspace.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

namespace kunci::testing::detail {

using Arguments = std::span<const std::string_view>;

/// All that a model server remembers.
struct ServerState {
    Keyspace keys;
    std::set<std::string, std::less<>> scripts;  // the digests that EVALSHA finds
};

/// One command on its way through the model.
struct Invocation {
    ServerState& server;
    Arguments arguments;  // the command's name included
    WallTime now;

    [[nodiscard]] std::string_view operator[](std::size_t index) const { return arguments[index]; }
    [[nodiscard]] std::size_t size() const { return arguments.size(); }
    [[nodiscard]] std::chrono::milliseconds now_ms() const {
        return std::chrono::floor<std::chrono::milliseconds>(now);
    }
    [[nodiscard]] Keyspace::Entry* find(std::string_view key) const {
        return server.keys.find(key, now_ms());
    }
};

/// A row of a table of commands. The arity counts the name; negative: at least so many, as in Redis.
struct CommandRow {
    std::string_view name;  // in lower case, as error texts have it
    int arity;
    Reply (*handler)(const Invocation&);

    [[nodiscard]] bool accepts(std::size_t argument_count) const {
        const auto count = static_cast<int>(argument_count);
        return arity >= 0 ? count == arity : count >= -arity;
    }
};

[[nodiscard]] constexpr char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

/// Whether `word` is `lower_case`, in any mixture of cases.
[[nodiscard]] constexpr bool is_word(std::string_view word, std::string_view lower_case) {
    return std::ranges::equal(word, lower_case, {}, lower);
}

/// The integer that `text` is, if Redis takes it for one: no plus sign, no spaces, no leading zeros.
[[nodiscard]] inline std::optional<std::int64_t> to_integer(std::string_view text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    if (std::to_string(value) != text) return std::nullopt;
    return value;
}

// The texts of Redis 7.0.
namespace errors {

inline Reply syntax() {
    return Reply::error("ERR syntax error");
}
inline Reply not_an_integer() {
    return Reply::error("ERR value is not an integer or out of range");
}
inline Reply wrong_type() {
    return Reply::error("WRONGTYPE Operation against a key holding the wrong kind of value");
}
inline Reply invalid_expire_time(std::string_view command) {
    return Reply::error("ERR invalid expire time in '" + std::string{command} + "' command");
}
inline Reply wrong_number_of_arguments(std::string_view command) {
    return Reply::error("ERR wrong number of arguments for '" + std::string{command} + "' command");
}
/// What Redis could do and the model cannot.
inline Reply beyond_the_model(const std::string& what) {
    return Reply::error("ERR kunci's model server does not support " + what);
}

/// Redis prints up to the first zero byte, and no line breaks.
[[nodiscard]] inline std::string printable(std::string_view bytes, std::size_t longest) {
    std::string text{bytes.substr(0, std::min<std::size_t>(bytes.find('\0'), longest))};
    std::ranges::replace_if(
        text, [](char c) { return c == '\r' || c == '\n'; }, ' ');
    return text;
}

inline Reply unknown_command(Arguments arguments) {
    constexpr std::size_t longest = 128;
    std::string listed;
    for (std::size_t i = 1; i < arguments.size() && listed.size() < longest; ++i) {
        listed += '\'' + printable(arguments[i], longest - listed.size()) + "' ";
    }
    return Reply::error("ERR unknown command '" + printable(arguments[0], longest) +
                        "', with args beginning with: " + listed);
}

}  // namespace errors

/// Checks the number of arguments and runs the command.
[[nodiscard]] inline Reply run(const CommandRow& row, const Invocation& call) {
    if (!row.accepts(call.size())) return errors::wrong_number_of_arguments(row.name);
    return row.handler(call);
}

/// The row of the command called `name`, in any case; null if the table has none.
template <std::size_t N>
[[nodiscard]] const CommandRow* find_row(const std::array<CommandRow, N>& table, std::string_view name) {
    const auto found =
        std::ranges::find_if(table, [&](const CommandRow& row) { return is_word(name, row.name); });
    return found == table.end() ? nullptr : &*found;
}

}  // namespace kunci::testing::detail
