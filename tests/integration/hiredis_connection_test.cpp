#include <kunci/adapters/hiredis/backoff.hpp>
#include <kunci/adapters/hiredis/greeting.hpp>
#include <kunci/adapters/hiredis/resolver.hpp>
#include <kunci/adapters/hiredis/session.hpp>
#include <kunci/adapters/hiredis/socket.hpp>
#include <kunci/adapters/hiredis/turnstile.hpp>
#include <kunci/adapters/hiredis/wait.hpp>
#include <kunci/hiredis.hpp>

#include "support/monitor.hpp"
#include "support/redis_server.hpp"
#include "support/signal_storm.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <future>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;
using kunci::Command;
using kunci::Deadline;
using kunci::Duration;
using kunci::Errc;
using kunci::Fault;
using kunci::HiredisConnection;
using kunci::HiredisOptions;
using kunci::Outcome;
using kunci::Reply;
using kunci::SteadyClock;
using kunci::TimePoint;
using kunci::test::Monitor;
using kunci::test::poll_until;
using kunci::test::RawClient;
using kunci::test::RedisServer;
using kunci::test::SignalStorm;

constexpr auto patience = 10s;

Deadline within(Duration time) {
    return SteadyClock::now() + time;
}

Command make(std::initializer_list<std::string_view> arguments) {
    Command command{*arguments.begin()};
    for (const auto* each = arguments.begin() + 1; each != arguments.end(); ++each) command.add(*each);
    return command;
}

Outcome run(HiredisConnection& connection, std::initializer_list<std::string_view> arguments) {
    return connection.execute(make(arguments), within(patience));
}

/// The outcome for a human, so that a failed expectation shows what came instead.
std::string text(const Outcome& outcome) {
    if (outcome.has_reply()) return kunci::test::to_text(outcome.reply());
    const Fault& fault = outcome.fault();
    const bool sent = fault.delivery == Fault::Delivery::maybe_executed;
    return (sent ? "maybe executed: " : "not sent: ") + fault.message;
}

bool is_fault(const Outcome& outcome, Fault::Delivery delivery, Errc code) {
    return !outcome.has_reply() && outcome.fault().delivery == delivery &&
           make_error_code(outcome.fault().code) == code;
}
bool is_not_sent(const Outcome& outcome, Errc code = Errc::unreachable) {
    return is_fault(outcome, Fault::Delivery::not_sent, code);
}
bool is_maybe_executed(const Outcome& outcome, Errc code = Errc::maybe_executed) {
    return is_fault(outcome, Fault::Delivery::maybe_executed, code);
}
bool contains(std::string_view whole, std::string_view part) {
    return whole.find(part) != std::string_view::npos;
}

/// The replies to a command that may meet a connection which has just been cut: until there is one.
Reply insist(HiredisConnection& connection, std::initializer_list<std::string_view> arguments) {
    for (const TimePoint end = within(patience); SteadyClock::now() < end;) {
        const Outcome outcome = run(connection, arguments);
        if (outcome.has_reply()) return outcome.reply();
    }
    return Reply::error("no reply, however often it is tried");
}

std::string tcp_url(int port, const std::string& database = "0") {
    return "redis://127.0.0.1:" + std::to_string(port) + "/" + database;
}

/// How many clients the server has over TCP; the tests' own commands come over its Unix socket.
long tcp_clients(const RedisServer& server) {
    const std::string list = server.cli({"CLIENT", "LIST"});
    long count = 0;
    for (std::size_t at = 0; (at = list.find(" addr=127.0.0.1:", at)) != std::string::npos; ++at) ++count;
    return count;
}

/// The sockets of this process that are connected to a port of 127.0.0.1.
std::vector<int> sockets_to(int port) {
    std::vector<int> found;
    for (int fd = 0; fd < 1024; ++fd) {
        sockaddr_in peer{};
        socklen_t size = sizeof peer;
        if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) continue;
        if (peer.sin_family == AF_INET && ntohs(peer.sin_port) == port) found.push_back(fd);
    }
    return found;
}

/// Waits until a command to that port is under way: bytes have gone out and are not acknowledged yet.
void await_bytes_under_way(int port) {
    const auto under_way = [port] {
        const std::vector<int> sockets = sockets_to(port);
        int bytes = 0;
        return !sockets.empty() && ::ioctl(sockets[0], TIOCOUTQ, &bytes) == 0 && bytes > 0;
    };
    EXPECT_TRUE(poll_until(under_way, patience));
}

/// Overshoot of a deadline. The machine may be busy, so it is the least of a few rounds.
template <typename Round>
Duration least_lateness(Round round) {
    Duration least = Duration::max();
    for (int i = 0; i < 3; ++i) {
        const TimePoint deadline = round();
        least = std::min(least, SteadyClock::now() - deadline);
    }
    return least;
}

/// A TCP server of one thread that does with each connection, one after the other, what the test says.
class ScriptedServer {
  public:
    using Script = std::function<void(int)>;

    explicit ScriptedServer(std::vector<Script> scripts) : scripts_{std::move(scripts)} {
        listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        auto* generic = reinterpret_cast<sockaddr*>(&address);
        if (::bind(listener_, generic, size) != 0 || ::listen(listener_, 8) != 0 ||
            ::getsockname(listener_, generic, &size) != 0) {
            throw std::runtime_error("scripted server");
        }
        port_ = ntohs(address.sin_port);
        thread_ = std::thread{[this] { serve(); }};
    }
    ScriptedServer(const ScriptedServer&) = delete;
    ScriptedServer& operator=(const ScriptedServer&) = delete;
    ~ScriptedServer() {
        ::shutdown(listener_, SHUT_RDWR);
        thread_.join();
        ::close(listener_);
    }

    [[nodiscard]] int port() const { return port_; }

    /// Reads until the end of the stream, or until `end` has come in.
    static std::string read(int fd, std::string_view end = {}) {
        std::string bytes;
        char buffer[65536];
        while (end.empty() || !contains(bytes, end)) {
            const ssize_t got = ::recv(fd, buffer, sizeof buffer, 0);
            if (got <= 0) break;
            bytes.append(buffer, static_cast<std::size_t>(got));
        }
        return bytes;
    }

    static bool write(int fd, std::string_view bytes) {
        return ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
    }

    /// Reads one command that ends in `end`, answers, and stays until the client goes.
    static Script answer(std::string end, std::string reply) {
        return [end = std::move(end), reply = std::move(reply)](int fd) {
            read(fd, end);
            write(fd, reply);
            read(fd);
        };
    }

  private:
    void serve() {
        for (const Script& script : scripts_) {
            const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
            if (fd < 0) return;
            script(fd);
            ::close(fd);
        }
    }

    std::vector<Script> scripts_;
    int listener_ = -1;
    int port_ = 0;
    std::thread thread_;
};

// ---- constructing -----------------------------------------------------------------------------------------

std::string refusal(const std::string& url, const HiredisOptions& options = {}) {
    try {
        const HiredisConnection connection{url, options};
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return {};
}

TEST(HiredisConnection, refuses_a_bad_url_and_says_what_is_wrong) {
    EXPECT_TRUE(contains(refusal("redis://h:0"), "bad port")) << refusal("redis://h:0");
    EXPECT_TRUE(contains(refusal("unix:///" + std::string(200, 'x')), "path of a Unix socket"));
    EXPECT_EQ(refusal("redis://127.0.0.1:1"), "");
}

TEST(HiredisConnection, refuses_tls_options_that_nothing_would_read) {
    EXPECT_TRUE(contains(refusal("redis://h", {.tls_ca_file = "ca.pem"}), "rediss://"));
    EXPECT_TRUE(contains(refusal("redis://h", {.tls_verify = false}), "rediss://"));
}

TEST(HiredisConnection, can_be_moved_but_not_copied) {
    static_assert(std::is_nothrow_move_constructible_v<HiredisConnection>);
    static_assert(!std::is_copy_constructible_v<HiredisConnection>);
    const RedisServer server;
    std::vector<HiredisConnection> connections;
    connections.emplace_back(server.url());
    EXPECT_EQ(text(run(connections[0], {"SET", "k", "v"})), "OK");
    HiredisConnection moved = std::move(connections[0]);
    EXPECT_EQ(text(run(moved, {"GET", "k"})), "v");
    EXPECT_EQ(tcp_clients(server), 1);
}

// ---- connecting -------------------------------------------------------------------------------------------

TEST(HiredisConnection, connects_at_its_first_use) {
    const RedisServer server;
    HiredisConnection connection{server.url()};
    EXPECT_EQ(tcp_clients(server), 0);
    EXPECT_EQ(text(run(connection, {"PING"})), "PONG");
    EXPECT_EQ(text(run(connection, {"PING"})), "PONG");
    EXPECT_EQ(tcp_clients(server), 1);
}

TEST(HiredisConnection, closes_its_connection_when_it_is_destroyed) {
    const RedisServer server;
    {
        HiredisConnection connection{server.url()};
        EXPECT_EQ(text(run(connection, {"PING"})), "PONG");
    }
    EXPECT_TRUE(poll_until([&] { return tcp_clients(server) == 0; }, patience));
}

TEST(HiredisConnection, sends_nothing_of_its_own_where_there_is_nothing_to_say) {
    const RedisServer server;
    Monitor monitor{server};
    HiredisConnection connection{server.url()};
    run(connection, {"SET", "a", "b"});
    EXPECT_EQ(monitor.stop(), (std::vector<std::vector<std::string>>{{"SET", "a", "b"}}));
}

TEST(HiredisConnection, reports_a_dead_port_at_once_as_not_sent) {
    const int port = kunci::test::detail::probably_free_port();
    HiredisConnection connection{tcp_url(port)};
    const TimePoint start = SteadyClock::now();
    const Outcome outcome = connection.execute(Command{"PING"}, within(60s));
    EXPECT_TRUE(is_not_sent(outcome, Errc::connection_refused)) << text(outcome);
    EXPECT_EQ(outcome.fault().message,
              "redis at 127.0.0.1:" + std::to_string(port) + "/0: connect: Connection refused");
    EXPECT_LT(SteadyClock::now() - start, 5s);
}

TEST(HiredisConnection, reports_a_missing_unix_socket_with_its_path) {
    HiredisConnection connection{"unix:///nonexistent/redis.sock"};
    const Outcome outcome = run(connection, {"PING"});
    EXPECT_TRUE(is_not_sent(outcome)) << text(outcome);
    EXPECT_EQ(outcome.fault().message,
              "redis at /nonexistent/redis.sock: connect: No such file or directory");
}

TEST(HiredisConnection, answers_with_the_last_failure_while_it_leaves_a_dead_server_alone) {
    HiredisConnection connection{tcp_url(kunci::test::detail::probably_free_port())};
    for (int i = 0; i < 6; ++i)
        run(connection, {"PING"});  // each waits for its turn; the pause is over 125 ms now
    const Deadline deadline = within(100ms);
    const Outcome outcome = connection.execute(Command{"PING"}, deadline);
    EXPECT_LT(SteadyClock::now(), deadline);
    EXPECT_TRUE(is_not_sent(outcome)) << text(outcome);
    EXPECT_TRUE(contains(outcome.fault().message, "Connection refused")) << text(outcome);
}

TEST(HiredisConnection, finds_a_server_that_came_back_within_one_call) {
    RedisServer server;
    HiredisConnection connection{server.url()};
    server.kill();
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(is_not_sent(run(connection, {"PING"})));
    server.restart();
    EXPECT_EQ(text(run(connection, {"PING"})), "PONG");
}

TEST(HiredisConnection, tries_the_next_address_of_a_name) {
    const RedisServer server;  // on 127.0.0.1 only, and localhost may be ::1 first
    HiredisConnection connection{"redis://localhost:" + std::to_string(server.port())};
    EXPECT_EQ(text(run(connection, {"PING"})), "PONG");
}

TEST(HiredisConnection, reports_an_unknown_host) {
    HiredisConnection connection{"redis://no-such-host.invalid"};
    const Outcome outcome = connection.execute(Command{"PING"}, within(2s));
    EXPECT_TRUE(is_not_sent(outcome, Errc::name_not_found)) << text(outcome);
    EXPECT_TRUE(contains(outcome.fault().message, "redis at no-such-host.invalid:6379/0: name look-up: "))
        << text(outcome);
}

TEST(HiredisConnection, speaks_over_a_unix_socket) {
    const RedisServer server;
    HiredisConnection connection{"unix://" + server.unix_socket_path() + "?db=2"};
    EXPECT_EQ(text(run(connection, {"SET", "k", "v"})), "OK");
    RawClient raw = server.control();
    raw.command({"SELECT", "2"});
    EXPECT_EQ(raw.command({"GET", "k"}).text(), "v");
}

TEST(HiredisConnection, opens_its_socket_close_on_exec) {
    const RedisServer server;
    HiredisConnection connection{server.url()};
    ASSERT_EQ(text(run(connection, {"PING"})), "PONG");
    const std::vector<int> sockets = sockets_to(server.port());
    ASSERT_EQ(sockets.size(), 1U);
    EXPECT_NE(::fcntl(sockets[0], F_GETFD) & FD_CLOEXEC, 0);
    EXPECT_NE(::fcntl(sockets[0], F_GETFL) & O_NONBLOCK, 0);
}

// ---- greeting ---------------------------------------------------------------------------------------------

TEST(HiredisConnection, authenticates_and_selects_again_after_it_was_cut_off) {
    const RedisServer server{{"--requirepass", "p@ss/word"}};
    HiredisConnection connection{"redis://:p%40ss%2Fword@127.0.0.1:" + std::to_string(server.port()) + "/3"};
    EXPECT_EQ(text(run(connection, {"SET", "k", "v"})), "OK");
    EXPECT_EQ(server.cli({"CLIENT", "KILL", "TYPE", "normal"}), "1");
    EXPECT_EQ(insist(connection, {"GET", "k"}), Reply::string("v"));
    RawClient raw = server.control();
    raw.command({"SELECT", "3"});
    EXPECT_EQ(raw.command({"GET", "k"}).text(), "v");
}

TEST(HiredisConnection, logs_in_as_the_user_of_the_url) {
    const RedisServer server;
    server.cli({"ACL", "SETUSER", "wor:ker", "on", ">pw", "~*", "+@all"});
    HiredisConnection connection{"redis://wor%3Aker:pw@127.0.0.1:" + std::to_string(server.port())};
    EXPECT_EQ(text(run(connection, {"ACL", "WHOAMI"})), "wor:ker");
}

TEST(HiredisConnection, reports_a_wrong_password_without_showing_it) {
    const RedisServer server{{"--requirepass", "right"}};
    HiredisConnection connection{"redis://:tops3cret@127.0.0.1:" + std::to_string(server.port()) + "/3"};
    for (int i = 0; i < 2; ++i) {
        const Outcome outcome = run(connection, {"SET", "k", "v"});
        EXPECT_TRUE(is_not_sent(outcome, Errc::wrong_password)) << text(outcome);
        EXPECT_EQ(outcome.fault().code_word, "WRONGPASS");
        EXPECT_TRUE(contains(outcome.fault().message, "127.0.0.1:" + std::to_string(server.port()) + "/3"));
        EXPECT_TRUE(contains(outcome.fault().message, "AUTH: WRONGPASS invalid username-password pair"));
        EXPECT_FALSE(contains(outcome.fault().message, "tops3cret"));
    }
    EXPECT_EQ(server.cli({"DBSIZE"}), "0");
}

TEST(HiredisConnection, reports_a_missing_and_an_unexpected_password) {
    const RedisServer closed{{"--requirepass", "right"}};
    HiredisConnection anonymous{tcp_url(closed.port(), "1")};
    const Outcome missing = run(anonymous, {"PING"});
    EXPECT_TRUE(is_not_sent(missing, Errc::password_required)) << text(missing);
    EXPECT_EQ(missing.fault().code_word, "NOAUTH");

    const RedisServer open;
    HiredisConnection eager{"redis://:x@127.0.0.1:" + std::to_string(open.port())};
    const Outcome unexpected = run(eager, {"PING"});
    EXPECT_TRUE(is_not_sent(unexpected, Errc::not_permitted)) << text(unexpected);
    EXPECT_EQ(unexpected.fault().code_word, "ERR");
}

TEST(HiredisConnection, hides_a_password_that_the_server_quotes) {
    ScriptedServer server{{ScriptedServer::answer("tops3cret\r\n",
                                                  "-ERR unknown command 'AUTH', with args beginning with: "
                                                  "'tops3cret'\r\n"),
                           ScriptedServer::answer("tops3cret\r\n", "-ERR what is tops3cret?\r\n")}};
    HiredisConnection connection{"redis://:tops3cret@127.0.0.1:" + std::to_string(server.port())};
    const Outcome quoted = run(connection, {"PING"});
    EXPECT_TRUE(contains(text(quoted), "unknown command 'AUTH'")) << text(quoted);
    EXPECT_FALSE(contains(text(quoted), "tops3cret")) << text(quoted);
    const Outcome replaced = run(connection, {"PING"});
    EXPECT_TRUE(contains(text(replaced), "what is ***?")) << text(replaced);
}

TEST(HiredisConnection, reports_a_db_that_the_server_does_not_have_as_misconfigured) {
    const RedisServer server;
    HiredisConnection connection{tcp_url(server.port(), "99")};
    const Outcome outcome = run(connection, {"PING"});
    EXPECT_TRUE(is_not_sent(outcome, Errc::no_such_database)) << text(outcome);
    EXPECT_TRUE(contains(outcome.fault().message, "SELECT: ERR DB index is out of range")) << text(outcome);
}

TEST(HiredisConnection, reports_a_server_that_is_not_ready_as_refusing) {
    ScriptedServer server{
        {ScriptedServer::answer("$1\r\n1\r\n", "-LOADING Redis is loading the dataset in memory\r\n")}};
    HiredisConnection connection{tcp_url(server.port(), "1")};
    const Outcome outcome = run(connection, {"PING"});
    EXPECT_TRUE(is_not_sent(outcome, Errc::loading)) << text(outcome);
    EXPECT_EQ(outcome.fault().code_word, "LOADING");
}

TEST(HiredisConnection, reports_a_server_that_has_too_many_clients) {
    const RedisServer server{{"--maxclients", "2"}};
    std::vector<RawClient> crowd;
    crowd.push_back(RawClient::unix_socket(server.unix_socket_path()));
    crowd.push_back(RawClient::unix_socket(server.unix_socket_path()));
    for (RawClient& each : crowd) ASSERT_EQ(each.command({"PING"}).text(), "PONG");

    // The server closes the connection without reading: the reset may overtake its words, but not always.
    const auto says_why = [](const Outcome& outcome) {
        return contains(text(outcome), "ERR max number of clients reached");
    };
    HiredisConnection selecting{tcp_url(server.port(), "1")};
    const auto selecting_is_told = [&] {
        const Outcome outcome = run(selecting, {"PING"});
        EXPECT_TRUE(is_not_sent(outcome, says_why(outcome) ? Errc::too_many_clients : Errc::unreachable))
            << text(outcome);
        return says_why(outcome);
    };
    EXPECT_TRUE(poll_until(selecting_is_told, patience));
    // Without a greeting the command is out before the refusal comes in, which is the reply then.
    HiredisConnection plain{server.url()};
    const auto plain_is_told = [&] {
        const Outcome outcome = run(plain, {"INCR", "n"});
        EXPECT_TRUE(says_why(outcome) || is_maybe_executed(outcome) || is_not_sent(outcome)) << text(outcome);
        return says_why(outcome);
    };
    EXPECT_TRUE(poll_until(plain_is_told, patience));
    crowd.clear();
    EXPECT_EQ(insist(selecting, {"PING"}), Reply::status("PONG"));
    EXPECT_TRUE(poll_until([&] { return text(run(plain, {"INCR", "n"})) == "1"; }, patience));
}

// ---- the deadline -----------------------------------------------------------------------------------------

TEST(HiredisConnection, sends_nothing_after_the_deadline) {
    const RedisServer server;
    HiredisConnection connection{server.url()};
    for (int i = 0; i < 2; ++i) {  // not connected, connected
        const Outcome outcome = connection.execute(make({"INCR", "n"}), within(-1ns));
        EXPECT_TRUE(is_not_sent(outcome)) << text(outcome);
        EXPECT_TRUE(is_not_sent(connection.execute(make({"INCR", "n"}), TimePoint::min())));
        EXPECT_EQ(text(run(connection, {"PING"})), "PONG");
    }
    EXPECT_EQ(server.cli({"EXISTS", "n"}), "0");
    EXPECT_EQ(text(connection.execute(Command{"PING"}, TimePoint::max())), "PONG");
}

TEST(HiredisConnection, gives_up_at_the_deadline_and_never_takes_a_late_reply_for_the_next) {
    RedisServer server;
    HiredisConnection connection{server.url()};
    ASSERT_EQ(text(run(connection, {"PING"})), "PONG");
    const Duration lateness = least_lateness([&] {
        server.pause();
        const Deadline deadline = within(100ms);
        const Outcome outcome = connection.execute(make({"ECHO", "late"}), deadline);
        EXPECT_TRUE(is_maybe_executed(outcome)) << text(outcome);
        EXPECT_GE(SteadyClock::now(), deadline);
        return deadline;
    });
    EXPECT_LT(lateness, 50ms);
    server.resume();
    for (int i = 0; i < 20; ++i) {
        const std::string mine = "mine " + std::to_string(i);
        EXPECT_EQ(text(run(connection, {"ECHO", mine})), mine);
    }
}

TEST(HiredisConnection, keeps_the_deadline_while_it_authenticates) {
    RedisServer server{{"--requirepass", "right"}};
    server.pause();  // the kernel accepts the connection, nobody answers
    const std::string url = "redis://:right@127.0.0.1:" + std::to_string(server.port());
    const Duration lateness = least_lateness([&] {
        HiredisConnection connection{url};
        const Deadline deadline = within(100ms);
        const Outcome outcome = connection.execute(Command{"PING"}, deadline);
        EXPECT_TRUE(is_not_sent(outcome)) << text(outcome);
        EXPECT_TRUE(contains(text(outcome), "AUTH: no answer before the deadline")) << text(outcome);
        return deadline;
    });
    EXPECT_LT(lateness, 50ms);
}

TEST(HiredisConnection, keeps_the_deadline_against_a_peer_that_trickles) {
    std::vector<ScriptedServer::Script> scripts(3, [](int fd) {
        ScriptedServer::read(fd, "PING\r\n");
        ScriptedServer::write(fd, "$1000000000\r\n");
        while (ScriptedServer::write(fd, "x")) ::poll(nullptr, 0, 1);
    });
    ScriptedServer server{std::move(scripts)};
    HiredisConnection connection{tcp_url(server.port())};
    const Duration lateness = least_lateness([&] {
        const Deadline deadline = within(100ms);
        const Outcome outcome = connection.execute(Command{"PING"}, deadline);
        EXPECT_TRUE(is_maybe_executed(outcome)) << text(outcome);
        return deadline;
    });
    EXPECT_LT(lateness, 50ms);
}

TEST(HiredisConnection, writes_the_recall_behind_a_command_that_it_gives_up) {
    RedisServer server;
    HiredisConnection connection{server.url()};
    ASSERT_EQ(text(run(connection, {"PING"})), "PONG");
    Monitor monitor{server};
    server.pause();
    const Outcome outcome =
        connection.execute(make({"SET", "lock:a", "token"}), within(50ms), make({"DEL", "lock:a"}));
    EXPECT_TRUE(is_maybe_executed(outcome)) << text(outcome);
    server.resume();
    EXPECT_TRUE(poll_until([&] { return tcp_clients(server) == 0; }, patience));
    EXPECT_EQ(server.cli({"EXISTS", "lock:a"}), "0");
    const auto seen = monitor.stop();
    const std::vector<std::vector<std::string>> both{{"SET", "lock:a", "token"}, {"DEL", "lock:a"}};
    EXPECT_NE(std::search(seen.begin(), seen.end(), both.begin(), both.end()), seen.end());
}

TEST(HiredisConnection, writes_no_recall_behind_a_command_that_was_answered) {
    const RedisServer server;
    HiredisConnection connection{server.url()};
    const Outcome outcome =
        connection.execute(make({"SET", "lock:a", "token"}), within(patience), make({"DEL", "lock:a"}));
    EXPECT_EQ(text(outcome), "OK");
    EXPECT_EQ(text(run(connection, {"GET", "lock:a"})), "token");
}

TEST(HiredisConnection, writes_no_recall_into_a_command_that_went_out_in_part) {
    std::promise<void> given_up;
    std::promise<std::string> seen;
    ScriptedServer server{{[&](int fd) {
        given_up.get_future().wait();
        seen.set_value(ScriptedServer::read(fd));
    }}};
    HiredisConnection connection{tcp_url(server.port())};
    const std::string large(64 * 1024 * 1024, 'x');  // more than any socket buffer takes
    const Command command = make({"SET", "k", large});
    const Outcome outcome = connection.execute(command, within(200ms), make({"DEL", "k"}));
    EXPECT_TRUE(is_maybe_executed(outcome)) << text(outcome);
    given_up.set_value();
    const std::string bytes = seen.get_future().get();
    const std::string whole = std::string{command.header().view()}.append(command.body());
    EXPECT_LT(bytes.size(), whole.size());
    EXPECT_TRUE(whole.starts_with(bytes));
}

TEST(HiredisConnection, lets_a_thread_wait_for_its_turn_until_its_own_deadline_only) {
    RedisServer server;
    HiredisConnection connection{server.url()};
    ASSERT_EQ(text(run(connection, {"PING"})), "PONG");
    server.pause();
    const Deadline end = within(800ms);
    std::vector<std::thread> holders;
    for (int i = 0; i < 2; ++i) {
        holders.emplace_back([&] { EXPECT_FALSE(connection.execute(make({"INCR", "n"}), end).has_reply()); });
    }
    // Whoever of the two has the turn, the third is not served before its deadline.
    const Duration lateness = least_lateness([&] {
        const Deadline deadline = within(100ms);
        const Outcome outcome = connection.execute(make({"INCR", "n"}), deadline);
        EXPECT_FALSE(outcome.has_reply()) << text(outcome);
        return deadline;
    });
    EXPECT_LT(lateness, 50ms);
    for (std::thread& each : holders) each.join();
    server.resume();
    EXPECT_EQ(text(run(connection, {"PING"})), "PONG");
}

// ---- broken peers -----------------------------------------------------------------------------------------

TEST(HiredisConnection, survives_replies_that_come_byte_by_byte) {
    ScriptedServer server{{[](int fd) {
        ScriptedServer::read(fd, "PING\r\n");
        for (const char byte : std::string_view{"*2\r\n$3\r\na\r\n\r\n:7\r\n"}) {
            ScriptedServer::write(fd, {&byte, 1});
        }
        ScriptedServer::read(fd);
    }}};
    HiredisConnection connection{tcp_url(server.port())};
    const Outcome outcome = run(connection, {"PING"});
    ASSERT_TRUE(outcome.has_reply()) << text(outcome);
    EXPECT_EQ(outcome.reply(), Reply::array({Reply::string("a\r\n"), Reply::integer(7)}));
}

TEST(HiredisConnection, closes_a_connection_with_a_malformed_reply) {
    std::promise<std::string> behind;
    ScriptedServer server{{[&](int fd) {
                               ScriptedServer::read(fd, "PING\r\n");
                               ScriptedServer::write(fd, "HTTP/1.1 400 Bad Request\r\n\r\n");
                               behind.set_value(ScriptedServer::read(fd));
                           },
                           ScriptedServer::answer("PING\r\n", "+PONG\r\n")}};
    HiredisConnection connection{tcp_url(server.port())};
    const Outcome outcome = connection.execute(Command{"PING"}, within(patience), Command{"QUIT"});
    EXPECT_TRUE(is_maybe_executed(outcome)) << text(outcome);
    EXPECT_TRUE(contains(text(outcome), "malformed reply: ")) << text(outcome);
    EXPECT_EQ(behind.get_future().get(), "");  // no recall: the caller may repeat the command
    EXPECT_EQ(text(run(connection, {"PING"})), "PONG");
}

TEST(HiredisConnection, trusts_no_reply_that_another_one_came_with) {
    ScriptedServer server{{ScriptedServer::answer("PING\r\n", "+STRAY\r\n+PONG\r\n"),
                           ScriptedServer::answer("PING\r\n", "+PONG\r\n")}};
    HiredisConnection connection{tcp_url(server.port())};
    const Outcome outcome = run(connection, {"PING"});
    EXPECT_TRUE(is_maybe_executed(outcome)) << text(outcome);
    EXPECT_EQ(text(run(connection, {"PING"})), "PONG");
}

TEST(HiredisConnection, does_not_send_again_what_a_peer_took_and_did_not_answer) {
    std::promise<std::string> second;
    ScriptedServer server{{[](int fd) { ScriptedServer::read(fd, "one\r\n"); },
                           [&](int fd) {
                               second.set_value(ScriptedServer::read(fd, "two\r\n"));
                               ScriptedServer::write(fd, "+OK\r\n");
                           }}};
    HiredisConnection connection{tcp_url(server.port())};
    const Outcome outcome = run(connection, {"ECHO", "one"});
    EXPECT_TRUE(is_maybe_executed(outcome)) << text(outcome);
    EXPECT_EQ(text(run(connection, {"ECHO", "two"})), "OK");
    EXPECT_EQ(second.get_future().get(), "*2\r\n$4\r\nECHO\r\n$3\r\ntwo\r\n");
}

TEST(HiredisConnection, notices_before_sending_that_the_server_closed_an_idle_connection) {
    const RedisServer server{{"--timeout", "1"}};
    HiredisConnection connection{server.url()};
    for (int i = 1; i <= 2; ++i) {
        EXPECT_EQ(text(run(connection, {"INCR", "n"})), std::to_string(i));
        ASSERT_TRUE(poll_until([&] { return tcp_clients(server) == 0; }, patience));
    }
    EXPECT_EQ(text(run(connection, {"GET", "n"})), "2");
}

TEST(HiredisConnection, notices_before_sending_that_the_server_was_restarted) {
    RedisServer server;
    HiredisConnection connection{server.url()};
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(text(run(connection, {"INCR", "n"})), "1");
        const TimePoint trusted_until = within(100ms);
        server.kill();
        server.restart();
        kunci::hiredis_detail::wait_until(trusted_until + 1ms);
    }
}

TEST(HiredisConnection, looks_at_once_at_a_connection_on_which_an_error_may_have_been_the_last_word) {
    ScriptedServer server{{[](int fd) {
                               ScriptedServer::read(fd, "one\r\n");
                               ScriptedServer::write(fd, "-ERR goodbye\r\n");
                               ::shutdown(fd, SHUT_WR);
                               ScriptedServer::read(fd);
                           },
                           ScriptedServer::answer("two\r\n", "+OK\r\n")}};
    HiredisConnection connection{tcp_url(server.port())};
    EXPECT_EQ(text(run(connection, {"ECHO", "one"})), "ERR goodbye");
    const std::vector<int> sockets = sockets_to(server.port());
    ASSERT_EQ(sockets.size(), 1U);
    pollfd closed{sockets[0], POLLRDHUP, 0};
    ASSERT_EQ(::poll(&closed, 1, 10000), 1);
    EXPECT_EQ(text(run(connection, {"ECHO", "two"})), "OK");
}

TEST(HiredisConnection, raises_no_sigpipe_on_a_stream_that_breaks_in_the_middle_of_a_command) {
    const std::vector<ScriptedServer::Script> scripts(20, [](int fd) {
        ScriptedServer::read(fd, "\r\n");
        ScriptedServer::write(fd, "+PONG\r\n");
    });
    ScriptedServer server{scripts};
    HiredisConnection connection{tcp_url(server.port())};
    const std::string large(8 * 1024 * 1024, 'x');
    for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(insist(connection, {"PING"}), Reply::status("PONG"));
        static_cast<void>(run(connection, {"SET", "k", large}));  // that we survive it is what is tested
    }
}

TEST(HiredisConnection, leaves_sigpipe_alone_and_survives_the_death_of_the_server) {
    struct sigaction before {};
    ::sigaction(SIGPIPE, nullptr, &before);
    ASSERT_EQ(before.sa_handler, SIG_DFL);
    RedisServer server;
    HiredisConnection connection{server.url()};
    const std::string large(8 * 1024 * 1024, 'x');
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(insist(connection, {"PING"}), Reply::status("PONG"));
        server.pause();  // so that the large command is under way when the server dies
        std::thread killer{[&] {
            await_bytes_under_way(server.port());
            server.kill();
        }};
        EXPECT_FALSE(run(connection, {"SET", "k", large}).has_reply());
        killer.join();
        EXPECT_TRUE(is_not_sent(run(connection, {"SET", "k", large})));
        server.restart();
    }
    struct sigaction after {};
    ::sigaction(SIGPIPE, nullptr, &after);
    EXPECT_EQ(after.sa_handler, SIG_DFL);
}

// ---- TLS --------------------------------------------------------------------------------------------------

#if defined(KUNCI_HIREDIS_TLS)

/// A server with TLS, and the certificates for it: one authority that signed one certificate, which server
/// and clients show, and one that signed nothing. Made by the openssl program.
class Tls : public ::testing::Test {
  protected:
    Tls() {
        for (const char* authority : {"ca", "other"}) {
            openssl("req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=kunci-" + std::string{authority} +
                    " -keyout " + file(authority, ".key") + " -out " + file(authority, ".crt"));
        }
        openssl("req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout " + file("own", ".key") + " -out " +
                file("own", ".csr"));
        openssl("x509 -req -days 2 -CAcreateserial -in " + file("own", ".csr") + " -CA " +
                file("ca", ".crt") + " -CAkey " + file("ca", ".key") + " -out " + file("own", ".crt"));
    }

    [[nodiscard]] std::string file(const std::string& name, const std::string& ending) const {
        return directory_.file((name + ending).c_str());
    }

    static void openssl(const std::string& arguments) {
        const std::string line = "openssl " + arguments + " >/dev/null 2>&1";
        if (std::system(line.c_str()) != 0) throw std::runtime_error("failed: " + line);  // NOLINT
    }

    [[nodiscard]] std::vector<std::string> server_options(std::vector<std::string> more = {}) const {
        std::vector<std::string> options{"--tls-port",         std::to_string(port), "--tls-cert-file",
                                         file("own", ".crt"),  "--tls-key-file",     file("own", ".key"),
                                         "--tls-ca-cert-file", file("ca", ".crt")};
        options.insert(options.end(), more.begin(), more.end());
        return options;
    }

    [[nodiscard]] std::string url(const std::string& user = "", const std::string& database = "") const {
        return "rediss://" + user + "127.0.0.1:" + std::to_string(port) + database;
    }

    [[nodiscard]] HiredisOptions trusting(const std::string& authority) const {
        HiredisOptions options;
        options.tls_ca_file = file(authority, ".crt");
        return options;
    }

    kunci::test::detail::TemporaryDirectory directory_;
    int port = kunci::test::detail::probably_free_port();
};

const std::vector<std::string> anonymous_clients{"--tls-auth-clients", "no"};

TEST_F(Tls, carries_any_bytes_both_ways_and_logs_in) {
    std::vector<std::string> options = server_options(anonymous_clients);
    options.insert(options.end(), {"--requirepass", "pw"});
    const RedisServer server{options};
    HiredisConnection connection{url(":pw@", "/2"), trusting("ca")};
    for (const std::size_t size : {0U, 1U, 16384U, 5'000'000U}) {
        const std::string bytes(size, '\0');
        EXPECT_EQ(text(run(connection, {"SET", "k", bytes})), "OK");
        const Outcome outcome = run(connection, {"GET", "k"});
        ASSERT_TRUE(outcome.has_reply()) << text(outcome);
        EXPECT_TRUE(outcome.reply() == Reply::string(bytes)) << size << " bytes";
    }
    RawClient raw = server.control();
    raw.command({"SELECT", "2"});
    EXPECT_EQ(raw.command({"EXISTS", "k"}), Reply::integer(1));
    EXPECT_EQ(tcp_clients(server), 1);
}

TEST_F(Tls, serves_many_threads) {
    const RedisServer server{server_options(anonymous_clients)};
    HiredisConnection connection{url(), trusting("ca")};
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
        threads.emplace_back([&] {
            for (int i = 0; i < 100; ++i) run(connection, {"INCR", "n"});
        });
    }
    for (std::thread& each : threads) each.join();
    EXPECT_EQ(server.cli({"GET", "n"}), "800");
}

TEST_F(Tls, refuses_a_server_that_no_trusted_authority_signed_unless_told_otherwise) {
    const RedisServer server{server_options(anonymous_clients)};
    HiredisConnection distrustful{url(), trusting("other")};
    const Outcome outcome = run(distrustful, {"PING"});
    EXPECT_TRUE(is_not_sent(outcome)) << text(outcome);
    EXPECT_TRUE(contains(text(outcome), "TLS: the handshake failed")) << text(outcome);
    HiredisOptions careless = trusting("other");
    careless.tls_verify = false;
    HiredisConnection anyone{url(), careless};
    EXPECT_EQ(text(run(anyone, {"PING"})), "PONG");
}

TEST_F(Tls, shows_its_certificate_to_a_server_that_asks_for_one) {
    const RedisServer server{server_options()};
    HiredisConnection nameless{url(), trusting("ca")};
    const Outcome outcome = run(nameless, {"PING"});
    EXPECT_TRUE(is_not_sent(outcome)) << text(outcome);
    HiredisOptions options = trusting("ca");
    options.tls_cert_file = file("own", ".crt");
    options.tls_key_file = file("own", ".key");
    HiredisConnection known{url(), options};
    EXPECT_EQ(text(run(known, {"PING"})), "PONG");
}

TEST_F(Tls, reports_a_server_that_speaks_no_tls_as_not_sent) {
    const RedisServer server;
    HiredisConnection connection{"rediss://127.0.0.1:" + std::to_string(server.port()), trusting("ca")};
    const Outcome outcome = connection.execute(Command{"PING"}, within(500ms));
    EXPECT_TRUE(is_not_sent(outcome)) << text(outcome);
}

TEST_F(Tls, refuses_options_that_cannot_be_used) {
    EXPECT_TRUE(contains(refusal(url(), {.tls_ca_file = file("none", ".crt")}), "tls_ options"));
    EXPECT_TRUE(contains(refusal(url(), {.tls_cert_file = file("own", ".crt")}), "tls_ options"));
}

TEST_F(Tls, keeps_the_deadline_and_writes_the_recall) {
    RedisServer server{server_options(anonymous_clients)};
    HiredisConnection connection{url(), trusting("ca")};
    ASSERT_EQ(text(run(connection, {"PING"})), "PONG");
    Monitor monitor{server};
    server.pause();
    const Deadline deadline = within(100ms);
    const Outcome outcome = connection.execute(make({"SET", "a", "token"}), deadline, make({"DEL", "a"}));
    EXPECT_LT(SteadyClock::now() - deadline, 1s);
    EXPECT_TRUE(is_maybe_executed(outcome)) << text(outcome);
    HiredisConnection late{url(), trusting("ca")};
    const Outcome handshake = late.execute(Command{"PING"}, within(100ms));
    EXPECT_TRUE(is_not_sent(handshake)) << text(handshake);
    server.resume();
    EXPECT_TRUE(poll_until([&] { return tcp_clients(server) == 0; }, patience));
    EXPECT_EQ(text(run(connection, {"EXISTS", "a"})), "0");
    const auto seen = monitor.stop();
    const std::vector<std::vector<std::string>> both{{"SET", "a", "token"}, {"DEL", "a"}};
    EXPECT_NE(std::search(seen.begin(), seen.end(), both.begin(), both.end()), seen.end());
}

TEST_F(Tls, survives_the_death_of_the_server_without_a_sigpipe) {
    RedisServer server{server_options(anonymous_clients)};
    HiredisConnection connection{url(), trusting("ca")};
    const std::string large(8 * 1024 * 1024, 'x');
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(insist(connection, {"PING"}), Reply::status("PONG"));
        server.pause();
        std::thread killer{[&] {
            await_bytes_under_way(port);
            server.kill();
        }};
        EXPECT_FALSE(run(connection, {"SET", "k", large}).has_reply());
        killer.join();
        server.restart();
    }
    sigset_t pending;
    ::sigpending(&pending);
    EXPECT_EQ(::sigismember(&pending, SIGPIPE), 0);
    sigset_t blocked;
    ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    EXPECT_EQ(::sigismember(&blocked, SIGPIPE), 0);
}

TEST_F(Tls, notices_before_sending_that_the_server_closed_an_idle_connection) {
    std::vector<std::string> options = server_options(anonymous_clients);
    options.insert(options.end(), {"--timeout", "1"});
    const RedisServer server{options};
    HiredisConnection connection{url(), trusting("ca")};
    for (int i = 1; i <= 2; ++i) {
        EXPECT_EQ(text(run(connection, {"INCR", "n"})), std::to_string(i));
        ASSERT_TRUE(poll_until([&] { return tcp_clients(server) == 0; }, patience));
    }
}

#else

TEST(HiredisConnection, refuses_rediss_where_hiredis_has_no_tls) {
    EXPECT_TRUE(contains(refusal("rediss://h"), "this build of hiredis has none")) << refusal("rediss://h");
}

#endif

// ---- many calls -------------------------------------------------------------------------------------------

TEST(HiredisConnection, carries_any_bytes_both_ways) {
    const RedisServer server;
    HiredisConnection connection{server.url()};
    const std::string zeros("\0a\0", 3);
    std::string all;
    for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
    std::string large;
    while (large.size() < 1024 * 1024) large += all;
    for (const std::string& bytes : {zeros, std::string{"\r\n$3\r\n"}, std::string{}, all, large}) {
        EXPECT_EQ(text(run(connection, {"SET", bytes, bytes})), "OK");
        const Outcome outcome = run(connection, {"GET", bytes});
        ASSERT_TRUE(outcome.has_reply()) << text(outcome);
        EXPECT_TRUE(outcome.reply() == Reply::string(bytes)) << bytes.size() << " bytes";
    }
}

TEST(HiredisConnection, gives_a_server_error_as_a_reply_and_goes_on) {
    const RedisServer server;
    HiredisConnection connection{server.url()};
    const Outcome outcome = run(connection, {"EVALSHA", std::string(40, 'f'), "0"});
    ASSERT_TRUE(outcome.has_reply()) << text(outcome);
    EXPECT_TRUE(outcome.reply().is(Reply::Kind::error));
    EXPECT_TRUE(outcome.reply().text().starts_with("NOSCRIPT "));
    const Outcome nested = run(connection, {"EVAL", "return {1, {redis.error_reply('ERR x')}, false}", "0"});
    ASSERT_TRUE(nested.has_reply()) << text(nested);
    EXPECT_EQ(nested.reply(),
              Reply::array({Reply::integer(1), Reply::array({Reply::error("ERR x")}), Reply::nil()}));
    EXPECT_EQ(tcp_clients(server), 1);
}

TEST(HiredisConnection, executes_every_command_once_in_a_storm_of_signals) {
    const RedisServer server;
    HiredisConnection connection{server.url()};
    const SignalStorm storm;
    int answered = 0;
    for (int i = 1; i <= 2000; ++i) answered += text(run(connection, {"INCR", "n"})) == std::to_string(i);
    for (int i = 0; i < 20; ++i) answered += text(run(connection, {"BLPOP", "none", "0.01"})) == "(nil)";
    EXPECT_EQ(answered, 2020);
    EXPECT_EQ(server.cli({"GET", "n"}), "2000");
    EXPECT_GT(SignalStorm::count(), 100);
}

TEST(HiredisConnection, serves_many_threads_and_gives_each_its_own_reply) {
    const RedisServer server;
    HiredisConnection connection{server.url()};
    std::atomic<int> own = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
        threads.emplace_back([&, t] {
            for (int i = 0; i < 500; ++i) {
                run(connection, {"INCR", "n"});
                const std::string word = std::to_string(t) + ":" + std::to_string(i);
                own += text(run(connection, {"ECHO", word})) == word;
            }
        });
    }
    for (std::thread& each : threads) each.join();
    EXPECT_EQ(own, 4000);
    EXPECT_EQ(server.cli({"GET", "n"}), "4000");
    EXPECT_EQ(tcp_clients(server), 1);
}

// ---- the parts --------------------------------------------------------------------------------------------

TEST(PollTimeout, is_rounded_up_and_never_overflows) {
    using kunci::hiredis_detail::poll_timeout;
    const TimePoint now = SteadyClock::now();
    EXPECT_EQ(poll_timeout(now, now + 1ns), 1);
    EXPECT_EQ(poll_timeout(now, now + 3ms), 3);
    EXPECT_EQ(poll_timeout(now, now), 0);
    EXPECT_EQ(poll_timeout(now, TimePoint::min()), 0);
    EXPECT_EQ(poll_timeout(now, TimePoint::max()), 1000);
    EXPECT_EQ(poll_timeout(TimePoint::min(), TimePoint::max()), 1000);
}

/// Two sockets connected to each other.
struct SocketPair {
    SocketPair() {
        int fds[2];
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) != 0) {
            throw std::runtime_error("socketpair");
        }
        ours = kunci::hiredis_detail::Socket{fds[0]};
        theirs = kunci::hiredis_detail::Socket{fds[1]};
    }

    kunci::hiredis_detail::Socket ours;
    kunci::hiredis_detail::Socket theirs;
};

TEST(Socket, delivers_its_last_words_although_there_are_bytes_that_nobody_read) {
    SocketPair pair;
    EXPECT_TRUE(ScriptedServer::write(pair.theirs.fd(), std::string(50000, 'x')));
    EXPECT_TRUE(ScriptedServer::write(pair.ours.fd(), "last words"));
    pair.ours.finish();
    EXPECT_EQ(ScriptedServer::read(pair.theirs.fd(), "words"), "last words");
    char byte = 0;
    EXPECT_EQ(::recv(pair.theirs.fd(), &byte, 1, 0), 0);  // an orderly end, no reset
}

TEST(Session, looks_once_after_the_deadline_however_much_there_is_to_read) {
    using namespace kunci::hiredis_detail;
    SocketPair pair;
    const int ours = pair.ours.fd();
    EXPECT_TRUE(ScriptedServer::write(pair.theirs.fd(), "$1000000\r\n" + std::string(100000, 'x')));
    Session session{Stream{std::move(pair.ours)}};
    const Received received = session.receive(TimePoint::min());
    EXPECT_FALSE(received.reply);
    EXPECT_TRUE(received.code == Errc::no_answer);
    char byte = 0;
    EXPECT_EQ(::recv(ours, &byte, 1, MSG_PEEK), 1);  // it did not go on for as long as there were bytes
}

TEST(Session, gives_a_reply_that_is_there_already_however_late_it_is_asked_for) {
    using namespace kunci::hiredis_detail;
    SocketPair pair;
    EXPECT_TRUE(ScriptedServer::write(pair.theirs.fd(), ":7\r\n"));
    Session session{Stream{std::move(pair.ours)}};
    EXPECT_EQ(session.receive(TimePoint::min()).reply, Reply::integer(7));
}

TEST(Greeting, hears_why_a_server_closed_the_connection_before_it_was_greeted) {
    using namespace kunci::hiredis_detail;
    SocketPair pair;
    EXPECT_TRUE(ScriptedServer::write(pair.theirs.fd(), "-ERR max number of clients reached\r\n"));
    pair.theirs.finish();
    Session session{Stream{std::move(pair.ours)}};
    const Greeting greeting{kunci::parse_redis_url("redis://h/1"), false};
    const std::optional<Fault> fault = greeting.exchange(session, "here: ", within(patience));
    ASSERT_TRUE(fault);
    EXPECT_EQ(fault->code, Errc::too_many_clients);
    EXPECT_EQ(fault->message, "here: SELECT: ERR max number of clients reached");
}

TEST(Greeting, tells_the_refusals_of_a_server_apart) {
    using kunci::hiredis_detail::classify_refusal;
    EXPECT_EQ(classify_refusal("AUTH", "WRONGPASS invalid"), Errc::wrong_password);
    EXPECT_EQ(classify_refusal("AUTH", "ERR invalid password"), Errc::not_permitted);
    EXPECT_EQ(classify_refusal("AUTH", "ERR max number of clients reached"), Errc::too_many_clients);
    EXPECT_EQ(classify_refusal("AUTH", "BUSY Redis is busy"), Errc::script_running);
    EXPECT_EQ(classify_refusal("AUTH", "DENIED Redis is running in protected mode"), Errc::not_permitted);
    EXPECT_EQ(classify_refusal("SELECT", "NOPERM this user has no permissions"), Errc::acl_denied);
    EXPECT_EQ(classify_refusal("SELECT", "ERR SELECT is not allowed in cluster mode"),
              Errc::no_such_database);
    EXPECT_EQ(classify_refusal("SELECT", "MASTERDOWN Link with MASTER is down"), Errc::master_down);
}

TEST(Backoff, grows_from_10_to_250_ms_with_jitter_and_starts_again_after_a_success) {
    kunci::hiredis_detail::Backoff backoff;
    EXPECT_EQ(backoff.retry_at(), TimePoint::min());
    const TimePoint now = SteadyClock::now();
    for (int round = 0; round < 2; ++round) {
        for (const Duration longest : {10ms, 20ms, 40ms, 80ms, 160ms, 250ms, 250ms}) {
            backoff.failed(now);
            EXPECT_LE(backoff.retry_at(), now + longest);
            EXPECT_GE(backoff.retry_at(), now + longest / 2);
        }
        backoff.succeeded();
        EXPECT_EQ(backoff.retry_at(), TimePoint::min());
    }
}

TEST(Turnstile, lets_one_through_at_a_time_although_many_give_up) {
    kunci::hiredis_detail::Turnstile turnstile;
    long inside = 0;  // unguarded on purpose
    std::atomic<long> entered = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            for (int i = 0; i < 5000; ++i) {
                if (!turnstile.enter(within(t % 2 == 0 ? Duration{patience} : Duration{5us}))) continue;
                ++inside;
                ++entered;
                turnstile.leave();
            }
        });
    }
    for (std::thread& each : threads) each.join();
    EXPECT_EQ(inside, entered);
    EXPECT_GE(entered, 10000);
    ASSERT_TRUE(turnstile.enter(TimePoint::min()));
    EXPECT_FALSE(turnstile.enter(within(1ms)));
    turnstile.leave();
    ASSERT_TRUE(turnstile.enter(within(patience)));
    turnstile.leave();
}

/// A name server in the test's hands. It is shared with the look-up threads, which may outlive the test.
struct NameServer {
    std::mutex mutex;
    std::condition_variable changed;
    bool answers = false;  // guarded by mutex
    bool fails = false;    // guarded by mutex
    int asked = 0;         // guarded by mutex
    bool takes_signals = false;

    kunci::hiredis_detail::Addresses look_up(const std::string& /*host*/, std::uint16_t port) {
        sigset_t blocked;
        ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
        std::unique_lock lock{mutex};
        ++asked;
        takes_signals = takes_signals || ::sigismember(&blocked, SIGALRM) == 0;
        changed.notify_all();
        changed.wait(lock, [this] { return answers; });
        if (fails) return {{}, "name look-up: try again", true};
        return kunci::hiredis_detail::get_addresses("127.0.0.1", port, AI_NUMERICHOST);
    }

    void set(bool& flag, bool value) {
        const std::lock_guard lock{mutex};
        flag = value;
        changed.notify_all();
    }
};

class SlowNames : public ::testing::Test {
  protected:
    SlowNames() = default;
    ~SlowNames() override { names->set(names->answers, true); }

    std::shared_ptr<NameServer> names = std::make_shared<NameServer>();
    kunci::hiredis_detail::Resolver resolver{
        kunci::parse_redis_url("redis://slow.example"),
        [names = names](const std::string& host, std::uint16_t port) { return names->look_up(host, port); }};
};

TEST_F(SlowNames, do_not_hold_the_caller_beyond_the_deadline_and_do_not_pile_up) {
    const Duration lateness = least_lateness([&] {
        const Deadline deadline = within(30ms);
        EXPECT_TRUE(resolver.resolve(deadline).endpoints.empty());
        EXPECT_GE(SteadyClock::now(), deadline);
        return deadline;
    });
    EXPECT_LT(lateness, 50ms);
    names->set(names->answers, true);
    EXPECT_EQ(resolver.resolve(within(patience)).endpoints.size(), 1U);
    EXPECT_EQ(names->asked, 1);
    EXPECT_FALSE(names->takes_signals);
}

TEST_F(SlowNames, leave_the_last_good_addresses_and_the_time_to_use_them) {
    names->set(names->answers, true);
    ASSERT_EQ(resolver.resolve(within(patience)).endpoints.size(), 1U);
    names->set(names->fails, true);
    EXPECT_EQ(resolver.resolve(within(patience)).endpoints.size(), 1U);
    names->set(names->answers, false);
    const Deadline deadline = within(200ms);
    EXPECT_EQ(resolver.resolve(deadline).endpoints.size(), 1U);
    EXPECT_LT(SteadyClock::now(), deadline);
}

}  // namespace
