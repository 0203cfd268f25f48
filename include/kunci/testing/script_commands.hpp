#pragma once

#include <kunci/connection/reply.hpp>
#include <kunci/testing/command_table.hpp>
#include <kunci/testing/script_twins.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// EVAL, EVALSHA and SCRIPT of the model server, for the scripts of kunci and no others.

namespace kunci::testing::detail {

[[nodiscard]] inline std::string lower_case(std::string_view text) {
    std::string result;
    std::ranges::transform(text, std::back_inserter(result), lower);
    return result;
}

[[nodiscard]] inline Reply no_such_script() {
    return Reply::error("NOSCRIPT No matching script. Please use EVAL.");
}
[[nodiscard]] inline Reply foreign_script() {
    return errors::beyond_the_model("scripts other than kunci's own");
}

/// The number of keys in the call, or the error that it is.
[[nodiscard]] inline std::optional<Reply> check_key_count(const Invocation& call) {
    const std::optional<std::int64_t> count = to_integer(call[2]);
    if (!count) return errors::not_an_integer();
    if (*count > static_cast<std::int64_t>(call.size()) - 3) {
        return Reply::error("ERR Number of keys can't be greater than number of args");
    }
    if (*count < 0) return Reply::error("ERR Number of keys can't be negative");
    return std::nullopt;
}

/// REQUIRES: the number of keys has been checked.
[[nodiscard]] inline Reply run_script(const ScriptTwin& twin, const Invocation& call) {
    const auto key_count = static_cast<std::size_t>(*to_integer(call[2]));
    const Arguments values = call.arguments.subspan(3);
    try {
        return twin.run({call, twin.script.sha1, values.first(key_count), values.subspan(key_count)});
    } catch (const ScriptError& error) {
        return Reply::error(error.text);
    }
}

inline Reply eval(const Invocation& call) {
    if (const std::optional<Reply> error = check_key_count(call)) return *error;
    const ScriptTwin* twin = find_twin_by_text(call[1]);
    if (twin == nullptr) return foreign_script();
    call.server.scripts.emplace(twin->script.sha1);
    return run_script(*twin, call);
}

inline Reply evalsha(const Invocation& call) {
    if (call[1].size() != 40) return no_such_script();
    if (const std::optional<Reply> error = check_key_count(call)) return *error;
    const std::string sha1 = lower_case(call[1]);
    if (!call.server.scripts.contains(sha1)) return no_such_script();
    return run_script(*find_twin_by_digest(sha1), call);
}

inline Reply script_load(const Invocation& call) {
    const ScriptTwin* twin = find_twin_by_text(call[2]);
    if (twin == nullptr) return foreign_script();
    call.server.scripts.emplace(twin->script.sha1);
    return Reply::string(std::string{twin->script.sha1});
}

inline Reply script_exists(const Invocation& call) {
    std::vector<Reply> answers;
    for (const std::string_view sha1 : call.arguments.subspan(2)) {
        answers.push_back(Reply::integer(call.server.scripts.contains(lower_case(sha1)) ? 1 : 0));
    }
    return Reply::array(std::move(answers));
}

inline Reply script_flush(const Invocation& call) {
    const bool known =
        call.size() == 2 || (call.size() == 3 && (is_word(call[2], "sync") || is_word(call[2], "async")));
    if (!known) return Reply::error("ERR SCRIPT FLUSH only support SYNC|ASYNC option");
    call.server.scripts.clear();
    return Reply::status("OK");
}

inline constexpr std::array<CommandRow, 3> script_subcommands{{
    {"script|load", 3, script_load},
    {"script|exists", -3, script_exists},
    {"script|flush", -2, script_flush},
}};

inline Reply script(const Invocation& call) {
    if (const CommandRow* row = find_row(script_subcommands, "script|" + std::string{call[1]})) {
        return run(*row, call);
    }
    return Reply::error("ERR unknown subcommand '" + errors::printable(call[1], 128) + "'. Try SCRIPT HELP.");
}

inline constexpr std::array<CommandRow, 3> script_commands{{
    {"eval", -3, eval},
    {"evalsha", -3, evalsha},
    {"script", -2, script},
}};

}  // namespace kunci::testing::detail
