#pragma once

#include <kunci/connection/reply.hpp>

#include "child_process.hpp"
#include "raw_client.hpp"

#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kunci::test {

namespace detail {

/// A directory of its own, removed with the object.
class TemporaryDirectory {
  public:
    TemporaryDirectory() {
        std::string name = (std::filesystem::temp_directory_path() / "kunci-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot create " + name);
        path_ = name;
    }
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
    ~TemporaryDirectory() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }

    [[nodiscard]] std::string file(const char* name) const { return (path_ / name).string(); }
    [[nodiscard]] std::string path() const { return path_.string(); }

  private:
    std::filesystem::path path_;
};

/// A port of 127.0.0.1 that nobody used a moment ago.
[[nodiscard]] inline int probably_free_port() {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    const bool bound = ::bind(fd, generic, size) == 0 && ::getsockname(fd, generic, &size) == 0;
    ::close(fd);
    if (!bound) throw std::runtime_error("no free port on 127.0.0.1");
    return ntohs(address.sin_port);
}

/// The program to start: "redis-server", or what the environment's KUNCI_TEST_REDIS_SERVER names.
[[nodiscard]] inline std::string server_program() {
    const char* chosen = ::getenv("KUNCI_TEST_REDIS_SERVER");
    return chosen != nullptr ? chosen : "redis-server";
}

/// Whether the server has the option: Redis 7.0 introduced it, where DEBUG was always on before.
[[nodiscard]] inline bool knows_enable_debug_command() {
    static const bool answer = [] {
        std::string text;
        std::FILE* output = ::popen((server_program() + " --version").c_str(), "r");
        if (output == nullptr) return true;
        for (int c = std::fgetc(output); c != EOF; c = std::fgetc(output)) text += static_cast<char>(c);
        ::pclose(output);
        const std::size_t at = text.find("v=");
        return at == std::string::npos || std::atoi(text.c_str() + at + 2) >= 7;
    }();
    return answer;
}

}  // namespace detail

/// A redis-server of this test alone: a free port of 127.0.0.1, a Unix socket and a directory of its own, no
/// persistence unless the extra arguments ask for it. It is up when the constructor returns, and nothing of
/// it is left when the destructor does, nor when the test crashes. Throws `std::runtime_error` where there is
/// no redis-server: a test that needs one fails, it is not skipped.
///
/// `command()` and `cli()` may be called from several threads; the other members from one at a time.
class RedisServer {
  public:
    /// `extra_args` as on the command line of redis-server: {"--requirepass", "secret"}.
    /// `environment` is added to its environment: {"NAME=value"}.
    explicit RedisServer(std::vector<std::string> extra_args = {}, std::vector<std::string> environment = {})
        : extra_args_{std::move(extra_args)}, environment_{std::move(environment)} {
        constexpr int attempts = 10;  // another process may take the port before the server does
        for (int attempt = 1; attempt <= attempts; ++attempt) {
            port_ = detail::probably_free_port();
            if (start()) return;
        }
        throw std::runtime_error("redis-server does not start: " + log());
    }

    RedisServer(const RedisServer&) = delete;
    RedisServer& operator=(const RedisServer&) = delete;
    ~RedisServer() {
        if (process_) process_->terminate();
    }

    /// Where it keeps its files.
    [[nodiscard]] std::string directory() const { return directory_.path(); }
    [[nodiscard]] int port() const noexcept { return port_; }
    [[nodiscard]] std::string url() const { return "redis://127.0.0.1:" + std::to_string(port_) + "/0"; }
    [[nodiscard]] std::string unix_socket_path() const { return directory_.file("s"); }
    [[nodiscard]] pid_t pid() const noexcept { return process_->pid(); }
    /// What the server has logged since it was last started.
    [[nodiscard]] std::string log() const {
        std::ostringstream text;
        text << std::ifstream{directory_.file("log")}.rdbuf();
        return text.str();
    }

    /// Freezes the server; returns when it really stands still. Connections stay open, the kernel goes on
    /// accepting new ones, nobody answers.
    void pause() { process_->pause(); }
    void resume() { process_->resume(); }

    /// Ends the server at once, without a goodbye, and returns when it is gone.
    void kill() { process_->kill(); }

    /// Ends the server if it runs, and starts it again with the same port, directory and arguments. What it had
    /// on disk it has again.
    void restart() {
        more_args_.clear();
        start_again(true);
    }

    /// The same, but returns while it still loads its data, slowly: about `per_key` for each key that was saved.
    void restart_loading_slowly(std::chrono::microseconds per_key) {
        more_args_ = {"--key-load-delay", std::to_string(per_key.count()),
                      "--loading-process-events-interval-bytes", "1024"};
        start_again(false);
    }

    /// Sends one command on a connection of its own (as the default user, with the password of
    /// --requirepass if that was given). A server error is a reply like any other.
    Reply command(std::initializer_list<std::string_view> arguments) const {
        return control().command(arguments);
    }
    Reply command(const std::vector<std::string>& arguments) const { return control().command(arguments); }

    /// The same, with the reply as `to_text()` renders it.
    std::string cli(std::initializer_list<std::string> arguments) const {
        return to_text(command(std::vector<std::string>{arguments}));
    }

    /// A connection for raw commands over the Unix socket, already authenticated.
    [[nodiscard]] RawClient control() const {
        RawClient client = RawClient::unix_socket(unix_socket_path());
        if (const std::optional<std::string> password = extra_argument("--requirepass")) {
            client.command({"AUTH", *password});
        }
        return client;
    }

  private:
    void start_again(bool loaded) {
        process_->terminate();
        std::filesystem::remove(directory_.file("log"));
        if (!start(loaded)) throw std::runtime_error("redis-server does not start again: " + log());
    }

    [[nodiscard]] std::optional<std::string> extra_argument(std::string_view name) const {
        for (std::size_t i = 0; i + 1 < extra_args_.size(); ++i) {
            if (extra_args_[i] == name) return extra_args_[i + 1];
        }
        return std::nullopt;
    }

    [[nodiscard]] std::vector<std::string> command_line() const {
        std::vector<std::string> line{detail::server_program()};
        const auto option = [&line](const char* name, std::string value) {
            line.emplace_back(name);
            line.push_back(std::move(value));
        };
        option("--port", std::to_string(port_));
        option("--bind", "127.0.0.1");
        option("--dir", directory_.path());
        option("--unixsocket", unix_socket_path());
        option("--logfile", directory_.file("log"));
        option("--save", "");
        option("--appendonly", "no");
        if (detail::knows_enable_debug_command()) option("--enable-debug-command", "local");
        line.insert(line.end(), extra_args_.begin(), extra_args_.end());
        line.insert(line.end(), more_args_.begin(), more_args_.end());
        return line;
    }

    /// False if the server ended before it was ready.
    bool start(bool loaded = true) {
        process_.reset();
        process_ = std::make_unique<ChildProcess>(command_line(), ChildSettings{.environment = environment_});
        bool ready = false;
        const auto decided = [&] { return (ready = answers(loaded)) || !process_->running(); };
        if (!poll_until(decided, RawClient::patience)) {
            throw std::runtime_error("redis-server is not ready in time: " + log());
        }
        return ready;
    }

    /// Asked on the Unix socket, which is this server's for certain, and is opened after the port was bound.
    [[nodiscard]] bool answers(bool loaded) const {
        try {
            return !control().command({"PING"}).text().starts_with("LOADING") || !loaded;
        } catch (const std::runtime_error&) {
            return false;
        }
    }

    std::vector<std::string> extra_args_;
    std::vector<std::string> environment_;
    std::vector<std::string> more_args_;
    detail::TemporaryDirectory directory_;
    int port_ = 0;
    std::unique_ptr<ChildProcess> process_;
};

}  // namespace kunci::test
