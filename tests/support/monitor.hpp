#pragma once

#include "raw_client.hpp"
#include "redis_server.hpp"

#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kunci::test {

/// One command as the server saw it.
struct MonitoredCommand {
    std::string client;  ///< Where it came from: "127.0.0.1:40312", "unix:<path>", or "lua".
    std::vector<std::string> arguments;
};

namespace detail {

/// Undoes MONITOR's quoting of one argument; `at` stands on the opening quote and ends behind the closing
/// one.
[[nodiscard]] inline std::string unquote(std::string_view line, std::size_t& at) {
    const auto digit = [](char c) { return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10; };
    std::string bytes;
    for (++at; at < line.size() && line[at] != '"'; ++at) {
        if (line[at] != '\\') {
            bytes += line[at];
            continue;
        }
        switch (const char escaped = line.at(++at)) {
            case 'n':
                bytes += '\n';
                break;
            case 'r':
                bytes += '\r';
                break;
            case 't':
                bytes += '\t';
                break;
            case 'a':
                bytes += '\a';
                break;
            case 'b':
                bytes += '\b';
                break;
            case 'x':
                bytes += static_cast<char>(digit(line.at(at + 1)) * 16 + digit(line.at(at + 2)));
                at += 2;
                break;
            default:
                bytes += escaped;
        }
    }
    ++at;
    return bytes;
}

/// Parses `1700000000.123456 [0 127.0.0.1:40312] "SET" "a" "b"`.
[[nodiscard]] inline MonitoredCommand parse_monitor_line(std::string_view line) {
    const std::size_t open = line.find('[');
    const std::size_t space = line.find(' ', open);
    const std::size_t close = line.find("] \"", open);
    if (open == std::string_view::npos || space > close || close == std::string_view::npos) {
        throw std::runtime_error("not a line of MONITOR: " + std::string{line});
    }
    MonitoredCommand command{std::string{line.substr(space + 1, close - space - 1)}, {}};
    for (std::size_t at = close + 2; at < line.size(); ++at) {
        command.arguments.push_back(unquote(line, at));
    }
    return command;
}

}  // namespace detail

/// Records every command that the server executes, from the constructor until `stop()`. What scripts call
/// inside the server is left out; what `RedisServer::command()` sends is not. One thread at a time.
class Monitor {
  public:
    explicit Monitor(const RedisServer& server) : server_{server}, stream_{server.control()} {
        if (stream_->command({"MONITOR"}).text() != "OK") throw std::runtime_error("MONITOR was refused");
    }

    /// Everything that was executed before this call, in order, each as its arguments. Ends the recording; call it once.
    std::vector<std::vector<std::string>> stop() {
        std::vector<std::vector<std::string>> commands;
        for (MonitoredCommand& command : stop_with_clients()) {
            commands.push_back(std::move(command.arguments));
        }
        return commands;
    }

    /// The same, with the address that each command came from.
    std::vector<MonitoredCommand> stop_with_clients() {
        const std::string marker = "kunci-monitor-" + std::to_string(stream_.value().native_handle());
        server_.command({"ECHO", marker});
        std::vector<MonitoredCommand> commands;
        while (true) {
            MonitoredCommand command = detail::parse_monitor_line(stream_->read_reply().text());
            if (command.arguments.size() == 2 && command.arguments[1] == marker) break;
            if (command.client != "lua") commands.push_back(std::move(command));
        }
        stream_.reset();
        return commands;
    }

  private:
    const RedisServer& server_;
    std::optional<RawClient> stream_;  // empty once stopped
};

}  // namespace kunci::test
