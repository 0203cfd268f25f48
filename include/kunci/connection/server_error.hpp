#pragma once

#include <kunci/errc.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace kunci {

namespace detail {

struct ServerErrorRule {
    std::string_view word;
    Errc code;
};

// Errors that Redis gives before it touches a key; every other error leaves the outcome open.
// Source: the shared error replies in server.c and the checks in processCommand() of Redis 7.0.
inline constexpr std::array not_executed_errors{
    ServerErrorRule{"LOADING", Errc::loading},
    ServerErrorRule{"BUSY", Errc::script_running},
    ServerErrorRule{"READONLY", Errc::read_only},
    ServerErrorRule{"MASTERDOWN", Errc::master_down},
    ServerErrorRule{"NOREPLICAS", Errc::too_few_replicas},
    ServerErrorRule{"MISCONF", Errc::disk_failing},
    ServerErrorRule{"OOM", Errc::out_of_memory},
    ServerErrorRule{"TRYAGAIN", Errc::cluster_down},
    ServerErrorRule{"CLUSTERDOWN", Errc::cluster_down},
    ServerErrorRule{"NOAUTH", Errc::password_required},
    ServerErrorRule{"WRONGPASS", Errc::wrong_password},
    ServerErrorRule{"NOPERM", Errc::acl_denied},
    ServerErrorRule{"MOVED", Errc::wrong_node},
    ServerErrorRule{"ASK", Errc::wrong_node},
    ServerErrorRule{"CROSSSLOT", Errc::cross_slot},
};

}  // namespace detail

/// The word that tells the kind of a server error: the first one, except that Redis before 7.0 hides the error
/// of a command inside a script behind "ERR Error running script".
[[nodiscard]] inline std::string_view server_error_word(std::string_view text) {
    if (text.starts_with("ERR Error running script")) {
        if (text.find("WRONGTYPE ") != std::string_view::npos) return "WRONGTYPE";
        for (const auto& rule : detail::not_executed_errors) {
            const auto at = text.find(rule.word);
            if (at != std::string_view::npos && text.substr(at + rule.word.size()).starts_with(' ')) {
                return rule.word;
            }
        }
    }
    return text.substr(0, text.find(' '));
}

/// What a server error with this first word is called here, if Redis gives it before it touches a key.
[[nodiscard]] inline std::optional<Errc> not_executed_error(std::string_view word) {
    const auto* rule = std::ranges::find(detail::not_executed_errors, word, &detail::ServerErrorRule::word);
    if (rule == detail::not_executed_errors.end()) return std::nullopt;
    return rule->code;
}

}  // namespace kunci
