#pragma once

#include "child_process.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kunci::test {

/// A process of its own that uses locks on the server at `url` as it is told (actor.cpp). One thread at a time.
class Actor {
  public:
    explicit Actor(const std::string& url, std::vector<std::string> environment = {})
        : process_{{KUNCI_ACTOR, url},
                   {.environment = with_sanitizers(std::move(environment)), .piped = true}} {}

    /// Its answer:
    ///   lock KEY TTL_MS [WAIT_MS [REFRESH]]  locked, refused
    ///   static-lock KEY TTL_MS               the same, with a guard of static storage duration
    ///   held KEY                             yes, no
    ///   lost KEY                             how often its stop token has fired
    ///   token KEY                            the secret
    ///   release KEY                          true, false
    ///   drop KEY                             dropped: the guard is destroyed
    ///   busy N                               busy: N threads go through locks without end
    ///   fork N PREFIX CYCLES                 children ok: N children took locks, and left the parent's alone
    /// or "error ..."; `exit`, `exit-elsewhere` (on another thread) and `abort` are not answered.
    std::string ask(const std::string& line) {
        tell(line);
        return process_.read_line(std::chrono::seconds{30});
    }
    void tell(const std::string& line) { process_.write_line(line); }

    void pause() { process_.pause(); }
    void resume() { process_.resume(); }
    void kill() { process_.kill(); }
    [[nodiscard]] pid_t pid() const { return process_.pid(); }
    [[nodiscard]] std::optional<int> wait_for_exit(std::chrono::milliseconds patience) {
        return process_.wait_for_exit(patience);
    }

  private:
    // ThreadSanitizer ends forked children that start threads, and calls threads that live until the exit a leak,
    // unless it is told not to; LeakSanitizer cannot see what the threads of the parent own.
    static std::vector<std::string> with_sanitizers(std::vector<std::string> environment) {
        environment.emplace_back("TSAN_OPTIONS=die_after_fork=0:report_thread_leaks=0");
        const auto is_asan = [](const std::string& each) { return each.starts_with("ASAN_OPTIONS="); };
        const auto asan = std::ranges::find_if(environment, is_asan);
        if (asan != environment.end()) *asan += ":detect_leaks=0";
        if (asan == environment.end()) environment.emplace_back("ASAN_OPTIONS=detect_leaks=0");
        return environment;
    }

    ChildProcess process_;
};

}  // namespace kunci::test
