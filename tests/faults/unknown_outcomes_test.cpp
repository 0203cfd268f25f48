// A lost answer proves nothing: what is told must be true all the same, and nothing may be left behind.
#include "support/locks_on_redis.hpp"
#include "support/monitor.hpp"
#include "support/server_faults.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

namespace kunci::test {
namespace {

using namespace std::chrono_literals;
using Way = Relay::Way;

class UnknownOutcomes : public ::testing::Test {
  protected:
    /// Runs `action` once undisturbed, then once for each byte that it sends and receives, with the connection
    /// cut behind that byte.
    void cut_at_every_byte(const std::function<void()>& action, std::size_t step = 1) {
        action();  // connects
        for (const auto way : {Way::to_server, Way::to_client}) {
            const auto before = relay_.bytes(way);
            action();
            const auto size = static_cast<std::size_t>(relay_.bytes(way) - before);
            ASSERT_GT(size, 3U);
            for (std::size_t bytes = 0; bytes <= size; bytes += step) {
                SCOPED_TRACE((way == Way::to_server ? "request cut behind byte " : "reply cut behind byte ") +
                             std::to_string(bytes));
                // On a connection that works: the one before may have been cut when all was said.
                ASSERT_TRUE(locks_.release(locks_.acquire("warm-up")));
                relay_.cut_after(way, bytes);
                action();
                relay_.heal();
                if (::testing::Test::HasFailure()) return;
            }
        }
        EXPECT_GT(relay_.cuts(), 10U);
    }

    [[nodiscard]] std::string value() const { return to_text(server_.command({"GET", "lock:k"})); }
    [[nodiscard]] bool is_free() const { return server_.command({"EXISTS", "lock:k"}).integer() == 0; }

    RedisServer server_;
    Relay relay_{server_.port()};
    Locks locks_ = client(relay_, {.operation_timeout = 2s});
};

// ---- the connection is cut, and the next one works: everything is found out ----

TEST_F(UnknownOutcomes, of_an_acquire_that_was_cut_anywhere_is_found_out) {
    cut_at_every_byte([&] {
        const auto token = locks_.try_acquire("k", {.ttl = 30s});
        ASSERT_TRUE(token) << "it was free";
        EXPECT_EQ(value(), token->token());
        EXPECT_GT(token->valid_until(), locks_.now());
        server_.command({"DEL", "lock:k"});
    });
}

TEST_F(UnknownOutcomes, of_an_acquire_of_a_taken_lock_that_was_cut_anywhere_is_found_out) {
    server_.command({"SET", "lock:k", "stranger", "PX", "600000"});
    cut_at_every_byte([&] {
        std::error_code error;
        EXPECT_FALSE(locks_.acquire("k", {.ttl = 30s}, error));
        EXPECT_EQ(error, make_error_code(Errc::lock_held)) << error.message();
        EXPECT_EQ(value(), "stranger");
    });
}

TEST_F(UnknownOutcomes, of_a_refresh_that_was_cut_anywhere_is_found_out) {
    auto token = locks_.acquire("k", {.ttl = 30s});
    cut_at_every_byte([&] {
        const auto before = token.valid_until();
        EXPECT_TRUE(locks_.refresh(token, 30s));
        EXPECT_GE(token.valid_until(), before);
        EXPECT_EQ(value(), token.token());
    });
    server_.command({"DEL", "lock:k"});
    EXPECT_FALSE(locks_.refresh(token, 30s));
    EXPECT_TRUE(is_free()) << "a refresh creates nothing";
}

TEST_F(UnknownOutcomes, of_a_release_that_was_cut_anywhere_is_found_out) {
    cut_at_every_byte([&] {
        auto token = locks_.try_acquire("k", {.ttl = 30s});
        ASSERT_TRUE(token) << "it was free";
        EXPECT_TRUE(locks_.release(*token));
        EXPECT_TRUE(is_free());
    });
}

TEST_F(UnknownOutcomes, of_scripts_that_are_sent_as_text_and_cut_anywhere_are_found_out) {
    cut_at_every_byte(
        [&] {
            auto token = locks_.try_acquire("k", {.ttl = 30s});
            ASSERT_TRUE(token);
            forget_scripts(server_);
            EXPECT_TRUE(locks_.refresh(*token, 60s));
            forget_scripts(server_);
            EXPECT_TRUE(locks_.release(*token));
            EXPECT_TRUE(is_free());
        },
        3);
}

TEST_F(UnknownOutcomes, of_a_guard_that_was_cut_anywhere_leave_nothing_behind) {
    cut_at_every_byte(
        [&] {
            {
                const auto guard = locks_.try_lock("k", {.ttl = 30s});
                ASSERT_TRUE(guard);
                EXPECT_TRUE(guard->held());
            }
            EXPECT_TRUE(is_free());
        },
        3);
}

// ---- the connection is cut, and there is no other: nobody can know ----

/// How long a client may lock itself out at most: far less than the TTL of 30 s.
constexpr auto own_ghost = 1s;

TEST_F(UnknownOutcomes, that_nobody_can_know_are_told_as_such_and_leave_no_ghost) {
    static_cast<void>(locks_.release(locks_.acquire("warm-up")));
    for (const auto way : {Way::to_server, Way::to_client}) {
        for (const std::size_t bytes : {0U, 1U, 3U, 4U, 40U, 90U}) {
            SCOPED_TRACE(bytes);
            static_cast<void>(locks_.release(locks_.acquire("warm-up", {.wait_timeout = 5s})));
            relay_.refuse();
            relay_.cut_after(way, bytes);
            std::error_code error;
            const auto token = locks_.try_acquire("k", {.ttl = 30s}, error);
            if (token) {  // the reply is shorter than that
                EXPECT_EQ(value(), token->token());
                server_.command({"DEL", "lock:k"});
            } else {
                EXPECT_TRUE(error == Errc::maybe_executed) << error.message();
            }
            relay_.heal();
            const auto own =
                time_of([&] { EXPECT_TRUE(locks_.lock("k", {.ttl = 30s, .wait_timeout = 10s}).held()); });
            EXPECT_LT(own, own_ghost + slack) << "locked out by itself";
            EXPECT_TRUE(gone(server_, "lock:k", own_ghost + slack));
        }
    }
}

TEST_F(UnknownOutcomes, of_refresh_and_release_keep_what_is_certain_and_can_be_tried_again) {
    auto locks = client(relay_, {.operation_timeout = 200ms});
    auto token = locks.acquire("k", {.ttl = 30s});
    const auto valid_until = token.valid_until();
    relay_.drop_replies(1);
    EXPECT_THROW(static_cast<void>(locks.refresh(token, 60s)), ConnectionError);
    EXPECT_EQ(token.valid_until(), valid_until) << "the lease is what it was";
    EXPECT_TRUE(locks.refresh(token, 60s));
    EXPECT_GT(token.valid_until(), valid_until);

    relay_.drop_replies(1);
    std::error_code error;
    EXPECT_FALSE(locks.release(token, error));
    EXPECT_EQ(error, make_error_code(Errc::no_answer)) << error.message();
    EXPECT_FALSE(locks.refresh(token, 60s)) << "its release may come into effect at any time";
    EXPECT_TRUE(locks.release(token)) << "by containment, the first attempt has done it";
    EXPECT_TRUE(is_free());
}

// ---- giving up ----

TEST_F(UnknownOutcomes, of_an_acquire_that_was_given_up_are_recalled_on_the_same_connection) {
    Monitor monitor{server_};
    for (int i = 0; i < 5; ++i) {
        auto locks = client(server_, {.operation_timeout = 100ms});
        ASSERT_FALSE(locks.refresh(LockToken{"lock:none", "none"}, 1s));  // connects
        server_.pause();
        std::error_code error;
        EXPECT_FALSE(locks.try_acquire("k", {.ttl = 30s}, error));
        EXPECT_EQ(error, make_error_code(Errc::no_answer)) << error.message();
        server_.resume();
        EXPECT_TRUE(gone(server_, "lock:k", own_ghost + slack));
    }
    const auto seen = monitor.stop_with_clients();
    int recalled = 0;
    for (std::size_t i = 0; i < seen.size(); ++i) {
        const auto& words = seen[i].arguments;
        if (words[0] != "SET") continue;
        // What comes next on that connection is the release of this very token.
        const auto next =
            std::ranges::find_if(seen.begin() + static_cast<std::ptrdiff_t>(i) + 1, seen.end(),
                                 [&](const auto& other) { return other.client == seen[i].client; });
        ASSERT_NE(next, seen.end()) << "nothing came behind " << words[2];
        EXPECT_EQ(next->arguments.at(0), "EVAL");
        EXPECT_EQ(next->arguments.at(4), words[2]);
        ++recalled;
    }
    EXPECT_EQ(recalled, 5);
}

}  // namespace
}  // namespace kunci::test
