// What becomes of locks when processes fork, exit, are signalled or run out of descriptors: the answers to
// reports O33 to O36, O38 and O39.
#include "support/actor.hpp"
#include "support/descriptor_exhaustion.hpp"
#include "support/locks_on_redis.hpp"
#include "support/monitor.hpp"
#include "support/recording_observer.hpp"
#include "support/server_faults.hpp"
#include "support/signal_storm.hpp"

#include <dirent.h>
#include <gtest/gtest.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace kunci::test {
namespace {

using namespace std::chrono_literals;

// ---- leaving scopes ----

// O33, O35
TEST(ProcessLife, scope_ends_quietly_and_in_time_on_a_dead_server_also_by_an_exception) {
    RedisServer server;
    constexpr auto timeout = 300ms;
    auto locks = client(server, {.operation_timeout = timeout});
    std::optional<std::chrono::steady_clock::time_point> left_body;
    try {
        const auto guard = locks.lock("k", {.ttl = 10s});
        server.kill();
        left_body = std::chrono::steady_clock::now();
        throw std::logic_error{"from the body"};
    } catch (const std::logic_error& e) {
        EXPECT_STREQ(e.what(), "from the body");
    }
    EXPECT_LT(std::chrono::steady_clock::now() - *left_body, 2 * timeout + slack);
}

// O35
TEST(ProcessLife, scope_that_is_left_by_an_exception_or_a_return_releases) {
    const RedisServer server;
    auto locks = client(server);
    const auto body = [&](bool fail) {
        const auto guard = locks.lock("k", {.ttl = 60s});
        if (fail) throw std::logic_error{"from the body"};
        return guard.held();
    };
    EXPECT_TRUE(body(false));
    EXPECT_EQ(server.cli({"EXISTS", "lock:k"}), "0");
    EXPECT_THROW(body(true), std::logic_error);
    EXPECT_EQ(server.cli({"EXISTS", "lock:k"}), "0");
}

// O34
TEST(ProcessLife, exit_releases_what_a_guard_of_static_storage_duration_holds) {
    const RedisServer server;
    for (const auto* how : {"exit", "exit-elsewhere"}) {
        Actor actor{server.url()};
        ASSERT_EQ(actor.ask("static-lock k 60000"), "locked");
        const auto took = time_of([&] {
            actor.tell(how);
            EXPECT_EQ(actor.wait_for_exit(10s), 0) << how;
        });
        EXPECT_LT(took, 1s + slack);
        EXPECT_EQ(server.cli({"EXISTS", "lock:k"}), "0") << how;
    }
}

// O34
TEST(ProcessLife, exit_and_abort_leave_what_other_guards_hold_to_its_ttl) {
    const RedisServer server;
    for (const auto* how : {"exit", "exit-elsewhere", "abort"}) {
        Actor actor{server.url()};
        ASSERT_EQ(actor.ask("lock k 600"), "locked");
        ASSERT_EQ(actor.ask("busy 3"), "busy");
        actor.tell(how);
        EXPECT_TRUE(actor.wait_for_exit(1s + slack)) << how;
        EXPECT_TRUE(gone(server, "lock:k", 600ms + slack)) << how;
    }
}

// ---- fork ----

// O36
TEST(ProcessLife, forked_children_have_locks_of_their_own_and_leave_the_parents_alone) {
    const RedisServer server;
    Actor parent{server.url()};
    ASSERT_EQ(parent.ask("lock k 900"), "locked");
    ASSERT_EQ(parent.ask("lock unrefreshed 60000 0 0"), "locked");
    const auto token = parent.ask("token k");
    Monitor monitor{server};
    for (int round = 0; round < 5; ++round) EXPECT_EQ(parent.ask("fork 4 child 200"), "children ok");
    let_pass(900ms);  // until it is certainly refreshed
    EXPECT_EQ(parent.ask("held k"), "yes");
    EXPECT_EQ(parent.ask("lost k"), "0");
    EXPECT_EQ(to_text(server.command({"GET", "lock:k"})), token);

    std::map<std::string, std::set<std::string>> clients_of;
    std::set<std::string> tokens;
    std::size_t sets = 0;
    for (const auto& command : monitor.stop_with_clients()) {
        const auto& words = command.arguments;
        if (words[0] == "SET") {
            ++sets;
            EXPECT_TRUE(tokens.insert(words[2]).second) << "a token twice";
        }
        for (const auto& word : words) {
            if (word == token) clients_of["parent"].insert(command.client);
            if (word.starts_with("lock:child")) clients_of["children"].insert(command.client);
        }
    }
    EXPECT_EQ(sets, 5U * 4 * 200);
    ASSERT_EQ(clients_of["parent"].size(), 1U) << "only the parent refreshed its lock";
    EXPECT_EQ(clients_of["children"].size(), 20U) << "each child made one connection of its own";
    EXPECT_FALSE(clients_of["children"].contains(*clients_of["parent"].begin()));
    EXPECT_EQ(parent.ask("release k"), "true");
    EXPECT_EQ(parent.ask("release unrefreshed"), "true");
}

// O36
TEST(ProcessLife, fork_in_the_middle_of_other_threads_commands_harms_neither_side) {
#ifdef __SANITIZE_ADDRESS__
    return;  // its allocator's own mutexes may be held at the fork, for ever
#endif
    const RedisServer server;
    Actor parent{server.url()};
    ASSERT_EQ(parent.ask("lock k 900"), "locked");
    ASSERT_EQ(parent.ask("busy 4"), "busy");
    for (int round = 0; round < 20; ++round) ASSERT_EQ(parent.ask("fork 2 child 20"), "children ok");
    EXPECT_EQ(parent.ask("held k"), "yes");
    EXPECT_EQ(parent.ask("release k"), "true");
}

// ---- signals ----

// O38
TEST(ProcessLife, storm_of_signals_interrupts_no_command_and_no_wait) {
    const RedisServer server;
    auto locks = client(server);
    server.command({"SET", "lock:taken", "stranger", "PX", "60000"});
    ASSERT_TRUE(locks.release(locks.acquire("warm-up")));
    Monitor monitor{server};
    constexpr std::size_t cycles = 2000;
    {
        const SignalStorm storm;
        for (std::size_t i = 0; i < cycles; ++i) {
            auto guard = locks.lock("k", {.ttl = 30s});
            ASSERT_TRUE(guard.release());
        }
        const auto took = time_of([&] { EXPECT_FALSE(locks.try_lock("taken", {.wait_timeout = 500ms})); });
        EXPECT_GE(took, 500ms);
        EXPECT_LT(took, 500ms + slack);
        EXPECT_GT(SignalStorm::count(), 100);
    }
    std::set<std::string> tokens;
    std::size_t releases = 0;
    for (const auto& words : monitor.stop()) {
        if (words[0] == "SET" && words[1] == "lock:k") {
            EXPECT_TRUE(tokens.insert(words[2]).second) << "sent twice";
        } else if (words[0] == "EVALSHA" && words[3] == "lock:k") {
            ++releases;
        }
    }
    EXPECT_EQ(tokens.size(), cycles);
    EXPECT_EQ(releases, cycles);
}

// O38
TEST(ProcessLife, signal_handlers_of_the_program_never_run_on_its_threads) {
    const RedisServer server;
    auto locks = client(server);
    const auto guard = locks.lock("k", {.ttl = 300ms});
    for (const auto& task : std::filesystem::directory_iterator{"/proc/self/task"}) {
        const auto thread = static_cast<pid_t>(std::stoi(task.path().filename()));
        if (thread == ::gettid()) continue;
        std::ifstream status{task.path() / "status"};
        std::string name;
        std::string blocked;
        for (std::string line; std::getline(status, line);) {
            if (line.starts_with("SigBlk:")) blocked = line.substr(line.find_first_not_of(" \t", 7));
        }
        const auto mask = std::stoull(blocked, nullptr, 16);
        const bool is_ours = (mask >> (SIGUSR1 - 1) & 1U) != 0;
        const bool is_of_the_bench = mask == 0;  // the thread that starts processes
        EXPECT_TRUE(is_ours || is_of_the_bench) << thread << ": " << blocked;
    }
}

// O39
TEST(ProcessLife, death_of_the_server_raises_no_sigpipe) {
    RedisServer server;
    struct sigaction before {};
    ::sigaction(SIGPIPE, nullptr, &before);
    ASSERT_EQ(before.sa_handler, SIG_DFL) << "otherwise this test proves nothing";
    auto locks = client(server);
    auto guard = locks.lock("k", {.ttl = 10s});
    server.kill();
    server.restart();
    std::error_code error;
    static_cast<void>(guard.release(error));  // whichever; what counts is that this process lives
    EXPECT_EQ(server.cli({"EXISTS", "lock:k"}), "0");
    struct sigaction after {};
    ::sigaction(SIGPIPE, nullptr, &after);
    EXPECT_EQ(after.sa_handler, SIG_DFL);
}

// ---- descriptors ----

TEST(ProcessLife, descriptors_beyond_1023_are_as_good_as_any) {
    const RedisServer server;
    const ManyDescriptors many{1500};
    ASSERT_EQ(many.count(), 1500U);
    auto locks = client(server);
    auto guard = locks.lock("k", {.ttl = 300ms});
    let_pass(600ms);
    EXPECT_TRUE(guard.held());
    EXPECT_TRUE(guard.release());
}

TEST(ProcessLife, exhausted_descriptors_are_named_waited_out_and_lose_no_held_lock) {
    if (!descriptors_can_run_out) return;
    const RedisServer server;
    auto connected = client(server);
    auto unconnected = client(server);
    auto guard = connected.lock("k", {.ttl = 400ms});
    std::optional<NoDescriptorsLeft> none;
    none.emplace();
    std::error_code error;
    EXPECT_FALSE(unconnected.try_lock("other", {}, error));
    EXPECT_EQ(error, make_error_code(Errc::no_descriptors)) << error.message();
    let_pass(600ms);
    EXPECT_TRUE(guard.held()) << "its connection is there already";
    std::jthread relief{[&] {
        let_pass(200ms);
        none.reset();
    }};
    EXPECT_TRUE(unconnected.lock("other", {.wait_timeout = 5s}).held());
    EXPECT_TRUE(guard.release());
}

/// The targets of the links in /proc/<pid>/fd: what a process has open.
std::vector<std::string> open_files_of(pid_t pid) {
    std::vector<std::string> found;
    std::error_code ignored;
    for (const auto& entry :
         std::filesystem::directory_iterator{"/proc/" + std::to_string(pid) + "/fd", ignored}) {
        found.push_back(std::filesystem::read_symlink(entry.path(), ignored));
    }
    return found;
}

TEST(ProcessLife, programs_that_are_started_meanwhile_inherit_no_connection) {
    const RedisServer server;
    std::jthread connects{[&](const std::stop_token& stop) {
        while (!stop.stop_requested()) {
            auto locks = client(server);
            EXPECT_TRUE(locks.try_lock("k", {.wait_timeout = 5s}));
        }
    }};
    for (int i = 0; i < 50; ++i) {
        // Not by the bench, which closes everything: as any program might, by fork and exec.
        const char* argv[] = {"sleep", "60", nullptr};
        pid_t child = 0;
        ASSERT_EQ(::posix_spawnp(&child, argv[0], nullptr, nullptr, const_cast<char**>(argv), environ), 0);
        const auto executes = [child] {
            std::error_code ignored;
            const auto exe =
                std::filesystem::read_symlink("/proc/" + std::to_string(child) + "/exe", ignored);
            return exe.filename() == "sleep" || exe.filename() == "coreutils";
        };
        EXPECT_TRUE(poll_until(executes, 5s));
        for (const auto& file : open_files_of(child)) EXPECT_FALSE(file.starts_with("socket:")) << file;
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
    }
}

}  // namespace
}  // namespace kunci::test
