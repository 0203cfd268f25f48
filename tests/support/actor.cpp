// A process of its own that uses kunci as it is told, line by line on its input; it answers each with a line.
#include <kunci/hiredis.hpp>
#include <kunci/kunci.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;
using kunci::LockOptions;
using Locks = kunci::DistributedLock<kunci::HiredisConnection>;

struct Held {
    explicit Held(kunci::LockGuard g) : guard{std::move(g)}, note{guard.stop_token(), [this] { ++lost; }} {}

    kunci::LockGuard guard;
    std::atomic<int> lost{0};
    std::stop_callback<std::function<void()>> note;
};

/// A guard with static storage duration: it is destroyed while the process exits.
std::optional<kunci::LockGuard>& static_guard() {
    static std::optional<kunci::LockGuard> guard;
    return guard;
}

class Actor {
  public:
    explicit Actor(const char* url) : locks_{kunci::HiredisConnection{url}, {.operation_timeout = 500ms}} {}

    /// The answer to a line.
    std::string act(const std::string& line) {
        std::istringstream words{line};
        std::string verb;
        words >> verb;
        try {
            return do_it(verb, words);
        } catch (const std::exception& e) {
            return std::string{"error "} + e.what();
        }
    }

  private:
    std::string do_it(const std::string& verb, std::istream& words) {
        if (verb == "lock") return lock(words);
        if (verb == "static-lock") return static_lock(words);
        if (verb == "fork") return fork_children(words);
        if (verb == "busy") return start_busy_threads(words);
        if (verb == "exit") std::exit(0);  // the guards of this object are not destroyed
        if (verb == "exit-elsewhere") return exit_elsewhere();
        if (verb == "abort") std::abort();
        return do_with_held(verb, words);
    }

    std::string do_with_held(const std::string& verb, std::istream& words) {
        std::string key;
        words >> key;
        const auto found = held_.find(key);
        if (found == held_.end()) return "error nothing is known of " + key;
        Held& held = *found->second;
        if (verb == "held") return held.guard.held() ? "yes" : "no";
        if (verb == "lost") return std::to_string(held.lost);
        if (verb == "token") return std::string{held.guard.token().token()};
        if (verb == "release") return held.guard.release() ? "true" : "false";
        if (verb == "drop") return held_.erase(found), "dropped";
        return "error what is " + verb + '?';
    }

    std::string lock(std::istream& words) {
        std::string key;
        int ttl = 0;
        int wait = 0;
        bool refresh = true;
        words >> key >> ttl >> wait >> refresh;
        auto guard = locks_.try_lock(key, {.ttl = std::chrono::milliseconds{ttl},
                                           .wait_timeout = std::chrono::milliseconds{wait},
                                           .auto_refresh = words.fail() || refresh});
        if (!guard) return "refused";
        held_[key] = std::make_unique<Held>(std::move(*guard));
        return "locked";
    }

    std::string static_lock(std::istream& words) {
        std::string key;
        int ttl = 0;
        words >> key >> ttl;
        static_guard() = locks_.try_lock(key, {.ttl = std::chrono::milliseconds{ttl}});
        return static_guard() ? "locked" : "refused";
    }

    std::string start_busy_threads(std::istream& words) {
        int count = 0;
        words >> count;
        for (int i = 0; i < count; ++i) {
            busy_.emplace_back([this, key = "busy" + std::to_string(i)](const std::stop_token& stop) {
                while (!stop.stop_requested())
                    static_cast<void>(locks_.lock(key, {.ttl = 300ms, .wait_timeout = 30s}).held());
            });
        }
        return "busy";
    }

    [[noreturn]] static std::string exit_elsewhere() {
        std::thread{[] { std::exit(0); }}.detach();
        for (;;) ::pause();
    }

    /// "children ok", or the exit codes of the children.
    std::string fork_children(std::istream& words) {
        int count = 0;
        std::string prefix;
        int cycles = 0;
        words >> count >> prefix >> cycles;
        std::vector<pid_t> children;
        for (int i = 0; i < count; ++i) {
            const pid_t child = ::fork();
            if (child == 0) be_a_child(prefix + std::to_string(i), cycles);
            children.push_back(child);
        }
        std::string codes;
        for (const pid_t child : children) {
            int status = 0;
            ::waitpid(child, &status, 0);
            if (status != 0) codes += ' ' + std::to_string(WIFEXITED(status) ? WEXITSTATUS(status) : -status);
        }
        return codes.empty() ? "children ok" : "error children ended with" + codes;
    }

    /// Exits with 0, or with what is wrong.
    [[noreturn]] void be_a_child(const std::string& key, int cycles) {
        for (auto& [name, held] : held_) {
            if (held->guard.held()) ::_exit(11);     // the parent's tenure is not the child's
            if (held->guard.release()) ::_exit(12);  // nor the child's to end
        }
        std::set<std::string> tokens;
        for (int i = 0; i < cycles; ++i) {
            const LockOptions options{.ttl = 5s, .wait_timeout = 5s};
            std::error_code error;
#ifdef __SANITIZE_THREAD__  // it cannot follow the threads of a forked child, so no guard, which has some
            auto token = locks_.acquire(key, options, error);
            if (!token || !locks_.release(*token)) ::_exit(13);
#else
            const auto guard = locks_.lock(key, options, error);
            if (!guard || !guard->held()) ::_exit(13);
            const auto token = std::optional{guard->token()};
#endif
            if (!tokens.insert(std::string{token->token()}).second) ::_exit(14);
        }
        held_.clear();
        static_cast<void>(
            new auto{std::move(busy_)});  // handles of threads that are not there: never touched again
        std::exit(0);
    }

    Locks locks_;
    std::map<std::string, std::unique_ptr<Held>> held_;
    std::vector<std::jthread> busy_;
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    Actor actor{argv[1]};
    for (std::string line; std::getline(std::cin, line);) std::cout << actor.act(line) << std::endl;
}
