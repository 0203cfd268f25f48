#pragma once

#include <kunci/kunci.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

// What a lock must do, whatever server is behind it. A new kind is tested by one more `World`:
//
//   world.locks()           a new client of the one server of this world: some LockOperations
//   world.command({...})    what the server answers to somebody else
//   world.outlive(key)      lets time pass until the server has dropped the key by itself
//   world.forget_scripts()  as after a restart of the server

namespace kunci::test {

template <typename World>
class LockConformance : public ::testing::Test {
  protected:
    using Milliseconds = std::chrono::milliseconds;

    [[nodiscard]] std::string stored(std::string_view key) {
        return world_.command({"GET", "lock:" + std::string{key}}).text();
    }
    [[nodiscard]] bool exists(std::string_view key) {
        return world_.command({"EXISTS", "lock:" + std::string{key}}).integer() == 1;
    }
    [[nodiscard]] std::int64_t pttl(std::string_view key) {
        return world_.command({"PTTL", "lock:" + std::string{key}}).integer();
    }

    World world_;
    decltype(std::declval<World&>().locks()) a_ = world_.locks();
    decltype(std::declval<World&>().locks()) b_ = world_.locks();
};

TYPED_TEST_SUITE_P(LockConformance);

using namespace std::chrono_literals;

// ---- exclusion and ownership ----

TYPED_TEST_P(LockConformance, stores_the_token_alone_under_the_prefixed_key) {
    const auto token = this->a_.acquire("k", {.ttl = 10s});
    EXPECT_EQ(token.key(), "lock:k");
    EXPECT_EQ(this->stored("k"), token.token());
    EXPECT_GT(this->pttl("k"), 0);
    EXPECT_LE(this->pttl("k"), 10'000);
}

TYPED_TEST_P(LockConformance, is_held_by_one_at_a_time) {
    auto first = this->a_.try_acquire("k");
    ASSERT_TRUE(first);
    EXPECT_FALSE(this->b_.try_acquire("k"));
    EXPECT_FALSE(this->a_.try_acquire("k"));
    EXPECT_TRUE(this->a_.release(*first));
    EXPECT_TRUE(this->b_.try_acquire("k"));
}

TYPED_TEST_P(LockConformance, of_one_key_does_not_touch_another) {
    const auto one = this->a_.acquire("one");
    const auto two = this->a_.acquire("two");
    EXPECT_TRUE(this->a_.release(one));
    EXPECT_EQ(this->stored("two"), two.token());
}

TYPED_TEST_P(LockConformance, has_a_fresh_token_in_every_tenure) {
    std::vector<std::string> tokens;
    for (int i = 0; i < 50; ++i) {
        const auto token = this->a_.acquire("k");
        tokens.emplace_back(token.token());
        ASSERT_TRUE(this->a_.release(token));
    }
    std::ranges::sort(tokens);
    EXPECT_EQ(std::ranges::adjacent_find(tokens), tokens.end());
}

TYPED_TEST_P(LockConformance, is_safe_from_a_forged_token) {
    const auto mine = this->a_.acquire("k", {.ttl = 10s});
    const LockToken forged{mine.key(), "forged"};
    LockToken known = forged;
    EXPECT_FALSE(this->b_.release(forged));
    EXPECT_FALSE(this->b_.refresh(known, 30s));
    EXPECT_EQ(this->stored("k"), mine.token());
    EXPECT_LE(this->pttl("k"), 10'000);
}

TYPED_TEST_P(LockConformance, is_released_once) {
    const auto token = this->a_.acquire("k");
    EXPECT_TRUE(this->a_.release(token));
    EXPECT_FALSE(this->exists("k"));
    EXPECT_FALSE(this->a_.release(token));
}

TYPED_TEST_P(LockConformance, can_be_released_by_whoever_knows_both_strings) {
    const auto token = this->a_.acquire("k");
    const std::string key{token.key()};
    const std::string secret{token.token()};
    EXPECT_TRUE(this->b_.release(LockToken{key, secret}));
    EXPECT_FALSE(this->exists("k"));
}

TYPED_TEST_P(LockConformance, that_expired_leaves_the_next_owner_alone) {
    auto late = this->a_.acquire("k", {.ttl = 50ms});
    this->world_.outlive("lock:k");
    const auto next = this->b_.acquire("k", {.ttl = 30s});
    EXPECT_FALSE(this->a_.release(late));
    EXPECT_FALSE(this->a_.refresh(late, 60s));
    EXPECT_EQ(this->stored("k"), next.token());
    EXPECT_LE(this->pttl("k"), 30'000);
}

// ---- refreshing ----

TYPED_TEST_P(LockConformance, is_refreshed_to_the_given_time) {
    auto token = this->a_.acquire("k", {.ttl = 5s});
    const auto before = token.valid_until();
    EXPECT_TRUE(this->a_.refresh(token, 30s));
    EXPECT_GT(this->pttl("k"), 5'000);
    EXPECT_LE(this->pttl("k"), 30'000);
    EXPECT_GT(token.valid_until(), before);
}

TYPED_TEST_P(LockConformance, is_never_shortened_by_a_refresh) {
    auto token = this->a_.acquire("k", {.ttl = 60s});
    const auto before = token.valid_until();
    EXPECT_TRUE(this->a_.refresh(token, 2s));
    EXPECT_GT(this->pttl("k"), 2'000);
    EXPECT_EQ(token.valid_until(), before);
}

TYPED_TEST_P(LockConformance, does_not_pile_up_time_by_many_refreshes) {
    auto token = this->a_.acquire("k", {.ttl = 10s});
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(this->a_.refresh(token, 10s));
    EXPECT_LE(this->pttl("k"), 10'000);
}

TYPED_TEST_P(LockConformance, is_never_created_by_a_refresh) {
    auto token = this->a_.acquire("k", {.ttl = 50ms});
    LockToken rebuilt{token.key(), token.token()};
    this->world_.outlive("lock:k");
    EXPECT_FALSE(this->a_.refresh(token, 30s));
    EXPECT_FALSE(this->a_.refresh(rebuilt, 30s));
    EXPECT_FALSE(this->exists("k"));
}

TYPED_TEST_P(LockConformance, tells_a_rebuilt_token_its_validity) {
    const auto token = this->a_.acquire("k", {.ttl = 5s});
    LockToken rebuilt{token.key(), token.token()};
    EXPECT_TRUE(this->b_.refresh(rebuilt, 30s));
    EXPECT_GT(rebuilt.valid_until(), this->b_.now());
}

TYPED_TEST_P(LockConformance, gets_its_expiry_back_where_somebody_took_it_away) {
    auto token = this->a_.acquire("k", {.ttl = 5s});
    this->world_.command({"PERSIST", "lock:k"});
    ASSERT_EQ(this->pttl("k"), -1);
    EXPECT_TRUE(this->a_.refresh(token, 5s));
    EXPECT_GT(this->pttl("k"), 0);
}

TYPED_TEST_P(LockConformance, survives_that_the_server_forgets_its_scripts) {
    for (int i = 0; i < 10; ++i) {
        this->world_.forget_scripts();
        auto token = this->a_.acquire("k", {.ttl = 5s});
        this->world_.forget_scripts();
        ASSERT_TRUE(this->a_.refresh(token, 30s));
        this->world_.forget_scripts();
        ASSERT_TRUE(this->a_.release(token));
    }
    EXPECT_FALSE(this->exists("k"));
}

// ---- what is not a lock ----

TYPED_TEST_P(LockConformance, never_touches_foreign_data_under_its_name) {
    this->world_.command({"RPUSH", "lock:list", "x"});
    this->world_.command({"HSET", "lock:hash", "f", "v"});
    this->world_.command({"SET", "lock:string", "data"});
    for (const char* key : {"list", "hash", "string"}) {
        LockToken stale{"lock:" + std::string{key}, "stale"};
        EXPECT_FALSE(this->a_.try_acquire(key)) << key;
        EXPECT_FALSE(this->a_.try_lock(key)) << key;
        EXPECT_FALSE(this->a_.release(stale)) << key;
        EXPECT_FALSE(this->a_.refresh(stale, 10s)) << key;
        EXPECT_TRUE(this->exists(key)) << key;
        EXPECT_EQ(this->pttl(key), -1) << key;
    }
    EXPECT_EQ(this->stored("string"), "data");
}

TYPED_TEST_P(LockConformance, takes_any_bytes_for_a_key) {
    using namespace std::string_view_literals;
    for (const auto key : {"a b"sv, "100%"sv, "a\0b"sv, "a\0c"sv, "\r\n"sv, "\xff"sv, "{tag}:x"sv, "}{"sv}) {
        auto guard = this->a_.try_lock(key);
        ASSERT_TRUE(guard);
        EXPECT_FALSE(this->b_.try_lock(key));
        EXPECT_TRUE(guard->release());
    }
    const auto one = this->a_.acquire("a\0b"sv);
    EXPECT_TRUE(this->b_.try_acquire("a\0c"sv)) << "two keys that differ behind a NUL are two locks";
    const std::string long_key(1'000'000, 'k');
    auto guard = this->a_.lock(long_key);
    EXPECT_FALSE(this->b_.try_lock(long_key));
}

// ---- refusals and bad arguments ----

TYPED_TEST_P(LockConformance, that_is_taken_throws_with_the_holders_remaining_time) {
    const auto held = this->a_.acquire("k", {.ttl = 10s});
    try {
        static_cast<void>(this->b_.acquire("k"));
        FAIL();
    } catch (const LockAcquisitionFailed& e) {
        EXPECT_EQ(e.code(), Errc::lock_held);
        EXPECT_EQ(e.attempts(), 1U);
        ASSERT_TRUE(e.holder_ttl());
        EXPECT_GT(*e.holder_ttl(), 0ms);
        EXPECT_LE(*e.holder_ttl(), 10s);
        EXPECT_NE(std::string{e.what()}.find("lock:k"), std::string::npos);
        EXPECT_EQ(std::string{e.what()}.find(held.token()), std::string::npos);
    }
    EXPECT_THROW(static_cast<void>(this->b_.lock("k")), LockAcquisitionFailed);
}

TYPED_TEST_P(LockConformance, reports_through_an_error_code_instead_of_throwing) {
    std::error_code error = make_error_code(Errc::unreachable);
    const auto held = this->a_.acquire("k", {.ttl = 10s}, error);
    ASSERT_TRUE(held);
    EXPECT_FALSE(error);
    EXPECT_FALSE(this->b_.acquire("k", {}, error));
    EXPECT_EQ(error, Errc::lock_held);
    EXPECT_FALSE(this->b_.lock("k", {}, error));
    EXPECT_EQ(error, Errc::lock_held);
    EXPECT_FALSE(this->b_.try_acquire("k", {}, error));
    EXPECT_FALSE(error);
    EXPECT_FALSE(this->b_.try_lock("k", {}, error));
    EXPECT_FALSE(error);
    LockToken token = *held;
    EXPECT_TRUE(this->a_.refresh(token, 20s, error));
    EXPECT_FALSE(error);
    EXPECT_TRUE(this->a_.release(token, error));
    EXPECT_FALSE(error);
    EXPECT_FALSE(this->a_.release(token, error));
    EXPECT_FALSE(error);
}

TYPED_TEST_P(LockConformance, refuses_options_that_make_no_sense_before_anything_is_sent) {
    const std::vector<LockOptions> bad{
        {.ttl = 0ms},           {.ttl = -5s},
        {.ttl = 999us},         {.ttl = 2ms},
        {.ttl = 24h * 36526},   {.ttl = std::chrono::hours::max()},
        {.wait_timeout = -1ms}, {.retry_interval = 0ms},
        {.max_hold = -1s},
    };
    for (const auto& options : bad) {
        EXPECT_THROW(static_cast<void>(this->a_.try_acquire("k", options)), std::invalid_argument);
        EXPECT_THROW(static_cast<void>(this->a_.lock("k", options)), std::invalid_argument);
    }
    EXPECT_THROW(static_cast<void>(this->a_.try_lock("")), std::invalid_argument);
    EXPECT_FALSE(this->exists("k"));
}

TYPED_TEST_P(LockConformance, is_not_harmed_by_a_refresh_that_makes_no_sense) {
    auto token = this->a_.acquire("k", {.ttl = 10s});
    for (const TimeSpan ttl : {TimeSpan{0ms}, TimeSpan{-5s}, TimeSpan{999us}, TimeSpan::max()}) {
        EXPECT_THROW(static_cast<void>(this->a_.refresh(token, ttl)), std::invalid_argument);
    }
    EXPECT_EQ(this->stored("k"), token.token());
    EXPECT_GT(this->pttl("k"), 5'000);
}

TYPED_TEST_P(LockConformance, takes_times_of_any_unit) {
    const std::pair<TimeSpan, std::int64_t> cases[]{{250ms, 250},
                                                    {1500us + 4ms, 6},
                                                    {std::chrono::duration<double>{0.75}, 750},
                                                    {24h * 36500, 24LL * 36500 * 3'600'000}};
    for (const auto& [ttl, milliseconds] : cases) {
        const auto token = this->a_.acquire("k", {.ttl = ttl});
        // The short ones may be over by now; none may ever live longer than it was given.
        EXPECT_LE(this->pttl("k"), milliseconds);
        EXPECT_NE(this->pttl("k"), -1);
        static_cast<void>(this->a_.release(token));
    }
}

// ---- guards ----

TYPED_TEST_P(LockConformance, is_released_at_the_end_of_the_scope) {
    {
        auto guard = this->a_.lock("k");
        EXPECT_TRUE(guard.held());
        EXPECT_GT(guard.remaining(), 0ns);
        EXPECT_EQ(guard.token().token(), this->stored("k"));
    }
    EXPECT_FALSE(this->exists("k"));
}

TYPED_TEST_P(LockConformance, is_released_when_the_scope_is_left_by_an_exception_or_early) {
    const auto early = [&] {
        auto guard = this->a_.lock("k");
        return guard.held();
    };
    EXPECT_TRUE(early());
    EXPECT_FALSE(this->exists("k"));
    try {
        auto guard = this->a_.lock("k");
        throw std::runtime_error{"from the body"};
    } catch (const std::runtime_error& e) {
        EXPECT_STREQ(e.what(), "from the body");
    }
    EXPECT_FALSE(this->exists("k"));
}

TYPED_TEST_P(LockConformance, goes_with_its_guard_when_that_is_moved) {
    std::optional<LockGuard> outer;
    {
        auto guard = this->a_.lock("k");
        outer.emplace(std::move(guard));
        EXPECT_FALSE(guard.held());         // NOLINT(bugprone-use-after-move): that is what is tested
        EXPECT_FALSE(guard.release());      // NOLINT(bugprone-use-after-move)
        EXPECT_EQ(guard.remaining(), 0ns);  // NOLINT(bugprone-use-after-move)
    }
    EXPECT_TRUE(outer->held());
    EXPECT_TRUE(this->exists("k"));
    outer.reset();
    EXPECT_FALSE(this->exists("k"));
}

TYPED_TEST_P(LockConformance, is_released_when_another_is_assigned_over_it) {
    auto guard = this->a_.lock("one");
    guard = this->a_.lock("two");
    EXPECT_FALSE(this->exists("one"));
    EXPECT_TRUE(this->exists("two"));
    auto& self = guard;
    guard = std::move(self);
    EXPECT_TRUE(guard.held());
    EXPECT_TRUE(this->exists("two"));
}

TYPED_TEST_P(LockConformance, says_in_release_whether_it_was_ours) {
    auto guard = this->a_.lock("k");
    EXPECT_TRUE(guard.release());
    EXPECT_FALSE(guard.held());
    EXPECT_FALSE(guard.release());
    auto lost = this->a_.lock("k");
    this->world_.command({"SET", "lock:k", "somebody else"});
    EXPECT_FALSE(lost.release());
    EXPECT_EQ(this->stored("k"), "somebody else");
}

TYPED_TEST_P(LockConformance, may_outlive_the_client_it_came_from) {
    std::optional<LockGuard> guard;
    {
        auto locks = this->world_.locks();
        guard = locks.try_lock("k");
    }
    EXPECT_TRUE(guard->held());
    guard.reset();
    EXPECT_FALSE(this->exists("k"));
}

TYPED_TEST_P(LockConformance, works_as_a_standard_mutex) {
    DistributedMutex mine{this->a_, "k", {.ttl = 5s}};
    DistributedMutex theirs{this->b_, "k", {.ttl = 5s}};
    mine.lock();
    EXPECT_TRUE(mine.held());
    EXPECT_FALSE(theirs.try_lock());
    EXPECT_FALSE(theirs.try_lock_for(-1s));
    mine.unlock();
    EXPECT_FALSE(mine.held());
    EXPECT_TRUE(theirs.try_lock());
    theirs.unlock();
    EXPECT_FALSE(this->exists("k"));
}

REGISTER_TYPED_TEST_SUITE_P(
    LockConformance, stores_the_token_alone_under_the_prefixed_key, is_held_by_one_at_a_time,
    of_one_key_does_not_touch_another, has_a_fresh_token_in_every_tenure, is_safe_from_a_forged_token,
    is_released_once, can_be_released_by_whoever_knows_both_strings, that_expired_leaves_the_next_owner_alone,
    is_refreshed_to_the_given_time, is_never_shortened_by_a_refresh, does_not_pile_up_time_by_many_refreshes,
    is_never_created_by_a_refresh, tells_a_rebuilt_token_its_validity,
    gets_its_expiry_back_where_somebody_took_it_away, survives_that_the_server_forgets_its_scripts,
    never_touches_foreign_data_under_its_name, takes_any_bytes_for_a_key,
    that_is_taken_throws_with_the_holders_remaining_time, reports_through_an_error_code_instead_of_throwing,
    refuses_options_that_make_no_sense_before_anything_is_sent,
    is_not_harmed_by_a_refresh_that_makes_no_sense, takes_times_of_any_unit,
    is_released_at_the_end_of_the_scope, is_released_when_the_scope_is_left_by_an_exception_or_early,
    goes_with_its_guard_when_that_is_moved, is_released_when_another_is_assigned_over_it,
    says_in_release_whether_it_was_ours, may_outlive_the_client_it_came_from, works_as_a_standard_mutex);

}  // namespace kunci::test
