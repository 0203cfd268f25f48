#pragma once

#include <kunci/connection/command.hpp>

#include <string_view>

namespace kunci::scripts {

/// A Lua script and the SHA-1 digest by which the server remembers it.
struct Script {
    std::string_view text;
    std::string_view sha1;
};

/// How the server is told which script is meant: by digest, or, after it answered NOSCRIPT, by the whole
/// text, which it then remembers.
enum class Form { digest, text };

/// The beginning of the call; `key_count` keys and then the other arguments are to be added.
[[nodiscard]] inline Command call(const Script& script, Form form, int key_count) {
    Command command{form == Form::digest ? "EVALSHA" : "EVAL"};
    command.add(form == Form::digest ? script.sha1 : script.text);
    command.add(key_count);
    return command;
}

}  // namespace kunci::scripts
