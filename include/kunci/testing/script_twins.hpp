#pragma once

#include <kunci/connection/reply.hpp>
#include <kunci/scripts/lock_scripts.hpp>
#include <kunci/scripts/script.hpp>
#include <kunci/testing/command_table.hpp>
#include <kunci/testing/data_commands.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// kunci's Lua scripts in C++, line for line, so that the model server needs no Lua. A test compares them with
// a real server's answers, errors and their line numbers included.

namespace kunci::testing::detail {

/// How a script ends that Redis breaks off.
struct ScriptError {
    std::string text;
};

/// What a script sees of the world. A missing key or argument is an empty optional, Lua's nil.
class ScriptWorld {
  public:
    using Value = std::optional<std::string_view>;

    ScriptWorld(const Invocation& call, std::string_view sha1, Arguments keys, Arguments arguments)
        : call_{call}, sha1_{sha1}, keys_{keys}, arguments_{arguments} {}

    /// KEYS[index] and ARGV[index].
    [[nodiscard]] Value key(std::size_t index) const { return at(keys_, index); }
    [[nodiscard]] Value argument(std::size_t index) const { return at(arguments_, index); }

    /// tonumber(ARGV[index]), in a comparison on that line of the script.
    [[nodiscard]] double number(int line, std::size_t index) const {
        const Value text = argument(index);
        const std::optional<double> value = text ? to_number(std::string{*text}) : std::nullopt;
        if (!value) {
            fail(line, "ERR user_script:" + std::to_string(line) + ": attempt to compare nil with number");
        }
        return *value;
    }

    /// redis.call(name, ...) on that line of the script.
    Reply call(int line, std::string_view name, std::initializer_list<Value> values) const {
        std::vector<std::string_view> arguments{name};
        for (const Value& value : values) {
            if (!value) fail(line, "ERR Lua redis lib command arguments must be strings or integers");
            arguments.push_back(*value);
        }
        const CommandRow* row = find_row(data_commands, name);
        Reply reply = run(*row, Invocation{call_.server, arguments, call_.now});
        if (reply.is(Reply::Kind::error)) fail(line, reply.text());
        return reply;
    }

    /// The same for a command that answers an integer, which Lua keeps as a double.
    [[nodiscard]] double call_number(int line, std::string_view name,
                                     std::initializer_list<Value> values) const {
        return static_cast<double>(call(line, name, values).integer());
    }

  private:
    [[nodiscard]] static Value at(Arguments values, std::size_t index) {
        return index <= values.size() ? Value{values[index - 1]} : Value{};
    }

    [[nodiscard]] static std::optional<double> to_number(const std::string& text) {
        char* end = nullptr;
        const double value = std::strtod(text.c_str(), &end);
        if (end == text.c_str()) return std::nullopt;
        while (*end != '\0' && std::string_view{" \t\n\v\f\r"}.find(*end) != std::string_view::npos) ++end;
        return *end == '\0' ? std::optional{value} : std::nullopt;
    }

    [[noreturn]] void fail(int line, const std::string& text) const {
        throw ScriptError{text + " script: " + std::string{sha1_} +
                          ", on @user_script:" + std::to_string(line) + "."};
    }

    const Invocation& call_;
    std::string_view sha1_;
    Arguments keys_;
    Arguments arguments_;
};

[[nodiscard]] inline Reply lua_integer(double value) {
    return Reply::integer(static_cast<std::int64_t>(value));
}

[[nodiscard]] inline Reply ttl_too_short() {
    return Reply::error("ERR kunci: the ttl must be at least 1 ms");
}

/// Whether a GET answered `token`. A missing key is false in Lua, which equals no argument, not even nil.
[[nodiscard]] inline bool holds(const Reply& owner, ScriptWorld::Value token) {
    return owner.is(Reply::Kind::string) && token && owner.text() == *token;
}

inline Reply claim_twin(const ScriptWorld& lua) {
    if (lua.number(2, 2) < 1) return ttl_too_short();
    const Reply owner = lua.call(3, "get", {lua.key(1)});
    if (!owner.is(Reply::Kind::nil) && !holds(owner, lua.argument(1))) {
        return Reply::array({Reply::integer(0), lua_integer(lua.call_number(4, "pttl", {lua.key(1)}))});
    }
    if (owner.is(Reply::Kind::nil)) {
        lua.call(6, "set", {lua.key(1), lua.argument(1), "px", lua.argument(2)});
        return Reply::array({Reply::integer(1), Reply::integer(-2)});
    }
    const double left = lua.call_number(9, "pttl", {lua.key(1)});
    if (left < lua.number(10, 2)) lua.call(10, "pexpire", {lua.key(1), lua.argument(2)});
    return Reply::array({Reply::integer(1), lua_integer(left)});
}

inline Reply refresh_twin(const ScriptWorld& lua) {
    if (lua.number(2, 2) < 1) return ttl_too_short();
    if (!holds(lua.call(3, "get", {lua.key(1)}), lua.argument(1))) return Reply::integer(-2);
    const double left = lua.call_number(4, "pttl", {lua.key(1)});
    if (left < lua.number(5, 2)) lua.call(5, "pexpire", {lua.key(1), lua.argument(2)});
    return lua_integer(left);
}

inline Reply release_twin(const ScriptWorld& lua) {
    if (!holds(lua.call(2, "get", {lua.key(1)}), lua.argument(1))) return Reply::integer(0);
    return lua.call(3, "del", {lua.key(1)});
}

struct ScriptTwin {
    scripts::Script script;
    Reply (*run)(const ScriptWorld&);
};

inline constexpr std::array<ScriptTwin, 3> script_twins{{
    {scripts::claim, claim_twin},
    {scripts::refresh, refresh_twin},
    {scripts::release, release_twin},
}};

[[nodiscard]] inline const ScriptTwin* find_twin_by_text(std::string_view text) {
    const auto found = std::ranges::find(script_twins, text, [](const auto& t) { return t.script.text; });
    return found == script_twins.end() ? nullptr : &*found;
}

/// `sha1` in lower case.
[[nodiscard]] inline const ScriptTwin* find_twin_by_digest(std::string_view sha1) {
    const auto found = std::ranges::find(script_twins, sha1, [](const auto& t) { return t.script.sha1; });
    return found == script_twins.end() ? nullptr : &*found;
}

}  // namespace kunci::testing::detail
