// Every fault of the bench really does what it says: otherwise the tests that use it would prove nothing.
#include "support/actor.hpp"
#include "support/descriptor_exhaustion.hpp"
#include "support/raw_client.hpp"
#include "support/redis_server.hpp"
#include "support/relay.hpp"
#include "support/server_faults.hpp"
#include "support/signal_storm.hpp"
#include "support/wall_clock.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace kunci::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using Way = Relay::Way;

class RelayTest : public ::testing::Test {
  protected:
    RedisServer server_;
    Relay relay_{server_.port()};
    RawClient client_ = RawClient::tcp(relay_.port());

    steady_clock::duration time_of_ping() {
        const auto start = steady_clock::now();
        EXPECT_EQ(client_.command({"PING"}).text(), "PONG");
        return steady_clock::now() - start;
    }
    bool is_broken(RawClient& client) {
        try {
            client.command({"PING"});
            return false;
        } catch (const std::runtime_error&) {
            return true;
        }
    }
};

TEST_F(RelayTest, forwards_any_bytes_both_ways) {
    const std::string large(1'000'000, '\0');
    EXPECT_EQ(client_.command({"SET", "k", large}).text(), "OK");
    EXPECT_EQ(client_.command({"GET", "k"}).text(), large);
    EXPECT_EQ(relay_.open(), 1U);
    EXPECT_GT(relay_.bytes(Way::to_server), large.size());
    EXPECT_GT(relay_.bytes(Way::to_client), large.size());
}

TEST_F(RelayTest, drops_exactly_one_reply_after_the_command_was_executed) {
    relay_.drop_replies(1, "SET");
    EXPECT_EQ(client_.command({"PING"}).text(), "PONG");
    client_.send(std::vector<std::string>{"set", "k", "v"});
    EXPECT_EQ(client_.command({"GET", "k"}).text(), "v");  // the next reply is that to the next command
    EXPECT_EQ(relay_.dropped_replies(), 1U);
    EXPECT_EQ(client_.command({"SET", "k", "w"}).text(), "OK");
}

TEST_F(RelayTest, holds_bytes_without_losing_any) {
    relay_.hold(Way::to_server);
    client_.send(std::vector<std::string>{"SET", "k", "v"});
    EXPECT_EQ(server_.cli({"EXISTS", "k"}), "0");
    relay_.hold(Way::to_client);
    relay_.let_go(Way::to_server);
    EXPECT_TRUE(poll_until([&] { return server_.cli({"EXISTS", "k"}) == "1"; }, 5s));
    pollfd readable{client_.native_handle(), POLLIN, 0};
    EXPECT_EQ(::poll(&readable, 1, 20), 0);
    relay_.heal();
    EXPECT_EQ(client_.read_reply().text(), "OK");
}

TEST_F(RelayTest, delays_and_trickles) {
    relay_.delay(Way::to_server, 20ms, 40ms);
    EXPECT_GE(time_of_ping(), 20ms);
    relay_.heal();
    relay_.trickle(Way::to_client, 1, 5ms);
    EXPECT_GE(time_of_ping(), 6 * 5ms);  // "+PONG\r\n"
}

TEST_F(RelayTest, swallows_everything_and_keeps_the_connection) {
    relay_.drop(Way::to_client);
    client_.send(std::vector<std::string>{"SET", "k", "v"});
    EXPECT_TRUE(poll_until([&] { return server_.cli({"GET", "k"}) == "v"; }, 5s));
    relay_.heal();
    EXPECT_EQ(client_.command({"GET", "k"}).text(), "v");
}

TEST_F(RelayTest, cuts_at_any_byte) {
    constexpr std::size_t reply_size = 11;  // "$5\r\nhello\r\n"
    for (std::size_t bytes = 0; bytes <= reply_size + 2; ++bytes) {
        RawClient client = RawClient::tcp(relay_.port());
        relay_.cut_after(Way::to_client, bytes);
        const auto echo = [&] { return client.command({"ECHO", "hello"}).text(); };
        if (bytes < reply_size) {
            EXPECT_THROW(echo(), std::runtime_error) << bytes;
        } else {
            EXPECT_EQ(echo(), "hello");
        }
        relay_.heal();
    }
    EXPECT_EQ(relay_.cuts(), reply_size + 1);
}

TEST_F(RelayTest, resets_connections_and_refuses_new_ones) {
    EXPECT_EQ(client_.command({"PING"}).text(), "PONG");
    relay_.cut();
    EXPECT_TRUE(is_broken(client_));
    relay_.refuse();
    EXPECT_THROW(RawClient::tcp(relay_.port()), std::runtime_error);
    relay_.accept();
    client_ = RawClient::tcp(relay_.port());
    EXPECT_EQ(client_.command({"PING"}).text(), "PONG");
    server_.kill();
    EXPECT_TRUE(is_broken(client_)) << "the end of the server is passed on";
}

// ---- the server's troubles ----

struct Trouble {
    const char* word;
    std::function<std::unique_ptr<void, void (*)(void*)>(const RedisServer&)> begin;
};

template <typename Fault>
Trouble trouble(const char* word) {
    return {word, [](const RedisServer& server) {
                return std::unique_ptr<void, void (*)(void*)>{
                    new Fault{server}, [](void* fault) { delete static_cast<Fault*>(fault); }};
            }};
}

class ServerTroubles : public ::testing::TestWithParam<Trouble> {};

INSTANTIATE_TEST_SUITE_P(FaultBench, ServerTroubles,
                         ::testing::Values(trouble<OutOfMemory>("OOM"), trouble<TooFewReplicas>("NOREPLICAS"),
                                           trouble<FailingDisk>("MISCONF"), trouble<Demoted>("READONLY"),
                                           trouble<BusyScript>("BUSY")),
                         [](const auto& each) { return std::string{each.param.word}; });

TEST_P(ServerTroubles, last_as_long_as_their_object_and_lose_no_data) {
    const RedisServer server;
    ASSERT_EQ(server.cli({"SET", "before", "v"}), "OK");
    {
        const auto fault = GetParam().begin(server);
        const std::string answer = server.cli({"SET", "k", "v"});
        EXPECT_TRUE(answer.starts_with(std::string{GetParam().word} + ' ')) << answer;
    }
    EXPECT_EQ(server.cli({"SET", "k", "v"}), "OK");
    EXPECT_EQ(server.cli({"GET", "before"}), "v");
}

TEST(ServerFaults, orphan_a_replica) {
    const RedisServer server;
    {
        const Orphaned replica{server};
        EXPECT_TRUE(server.cli({"GET", "k"}).starts_with("MASTERDOWN "));
    }
    EXPECT_EQ(server.cli({"GET", "k"}), "(nil)");
}

TEST(ServerFaults, pause_clients) {
    const RedisServer server;
    RawClient client = server.control();
    {
        const PausedClients pause{server, "WRITE", 60s};
        EXPECT_EQ(server.cli({"GET", "k"}), "(nil)");
        client.send(std::vector<std::string>{"SET", "k", "v"});
        EXPECT_EQ(server.cli({"GET", "k"}), "(nil)");
    }
    EXPECT_EQ(client.read_reply().text(), "OK");
}

TEST(ServerFaults, take_no_more_clients_and_want_a_password) {
    const RedisServer server;
    {
        const TooManyClients full{server};
        RawClient client = RawClient::tcp(server.port());
        EXPECT_TRUE(client.read_reply().text().starts_with("ERR max number of clients"));
    }
    {
        const PasswordSet locked{server, "secret"};
        EXPECT_TRUE(RawClient::tcp(server.port()).command({"PING"}).text().starts_with("NOAUTH"));
    }
    EXPECT_EQ(RawClient::tcp(server.port()).command({"PING"}).text(), "PONG");
}

TEST(ServerFaults, load_slowly) {
    RedisServer server;
    server.command({"DEBUG", "POPULATE", "2000"});
    ASSERT_EQ(server.cli({"SAVE"}), "OK");
    server.restart_loading_slowly(200us);
    EXPECT_TRUE(server.cli({"GET", "k"}).starts_with("LOADING"));
    EXPECT_TRUE(poll_until([&] { return server.cli({"DBSIZE"}) == "2000"; }, 10s));
}

TEST(ServerFaults, forget_scripts_kill_connections_and_limit_users) {
    const RedisServer server;
    const std::string digest = server.cli({"SCRIPT", "LOAD", "return 1"});
    forget_scripts(server);
    EXPECT_TRUE(server.cli({"EVALSHA", digest, "0"}).starts_with("NOSCRIPT"));
    RawClient client = RawClient::tcp(server.port());
    EXPECT_EQ(client.command({"PING"}).text(), "PONG");
    kill_connections(server);
    EXPECT_THROW(client.command({"PING"}), std::runtime_error);
    const AclUser user{server, "reader", {"on", ">pw", "+get", "~lock:*"}};
    client = RawClient::tcp(server.port());
    EXPECT_EQ(client.command({"AUTH", "reader", "pw"}).text(), "OK");
    EXPECT_TRUE(client.command({"SET", "lock:k", "v"}).text().starts_with("NOPERM"));
}

// ---- the process and its clocks ----

TEST(WallClockShim, shifts_the_wall_clock_of_a_process_and_nothing_else) {
    WallClock clock;
    const RedisServer server{{}, clock.environment()};
    const auto time_of_server = [&] {
        return std::atoll(server.command({"TIME"}).elements().at(0).text().c_str());
    };
    const auto before = time_of_server();
    clock.step(1h);
    EXPECT_NEAR(static_cast<double>(time_of_server() - before), 3600, 10);
    clock.step(-2h);
    EXPECT_NEAR(static_cast<double>(time_of_server() - before), -3600, 10);
    EXPECT_NEAR(static_cast<double>(::time(nullptr) - before), 0, 10) << "not this process";
}

TEST(SignalStorm, interrupts_system_calls_and_ends) {
    int interrupted = 0;
    {
        const SignalStorm storm;
        EXPECT_TRUE(poll_until([] { return SignalStorm::count() > 20; }, 10s));
        for (int i = 0; i < 20; ++i) interrupted += ::poll(nullptr, 0, 50) < 0 ? 1 : 0;
    }
    EXPECT_GE(interrupted, 10);
    const int count = SignalStorm::count();
    EXPECT_EQ(::poll(nullptr, 0, 20), 0);
    EXPECT_EQ(SignalStorm::count(), count);
}

TEST(Descriptors, are_exhausted_or_many_while_the_object_lives) {
    const auto new_socket = [] {
        const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0) ::close(fd);
        return fd;
    };
    {
        const NoDescriptorsLeft none;
        EXPECT_EQ(new_socket(), -1);
        EXPECT_EQ(errno, EMFILE);
    }
    {
        const ManyDescriptors many{1500};
        ASSERT_EQ(many.count(), 1500U) << "the hard limit of the process is too low";
        EXPECT_GT(new_socket(), 1023);
    }
    EXPECT_GE(new_socket(), 0);
}

TEST(ActorProcess, answers_can_be_stopped_and_tells_how_it_ended) {
    const RedisServer server;
    Actor actor{server.url()};
    EXPECT_EQ(actor.ask("lock k 10000"), "locked");
    EXPECT_EQ(server.cli({"GET", "lock:k"}), actor.ask("token k"));
    EXPECT_EQ(actor.ask("held k"), "yes");
    EXPECT_EQ(actor.ask("nonsense k"), "error what is nonsense?");
    actor.tell("abort");
    EXPECT_EQ(actor.wait_for_exit(10s), 128 + SIGABRT);
    EXPECT_THROW(actor.ask("held k"), std::runtime_error);
}

}  // namespace
}  // namespace kunci::test
