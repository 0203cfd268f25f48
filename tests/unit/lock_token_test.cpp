#include <kunci/detail/random_bytes.hpp>
#include <kunci/lock_token.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <set>
#include <stdexcept>
#include <string>

namespace {

using namespace std::string_view_literals;
using kunci::LockToken;

TEST(LockToken, is_rebuilt_from_its_two_strings) {
    const LockToken original{kunci::LockKey{"lock:", "k"}, "secret", kunci::TimePoint{}};
    const std::string key{original.key()};
    const std::string token{original.token()};
    const LockToken rebuilt{key, token};
    EXPECT_EQ(rebuilt, original);
    EXPECT_EQ(rebuilt.key(), "lock:k");
    EXPECT_EQ(rebuilt.valid_until(), kunci::TimePoint::min());
}

TEST(LockToken, keeps_every_byte) {
    const LockToken token{"lock:\0\xff"sv, "\x00\r\n %\xff"sv};
    EXPECT_EQ(token.key(), "lock:\0\xff"sv);
    EXPECT_EQ(token.token(), "\x00\r\n %\xff"sv);
}

TEST(LockToken, refuses_to_be_empty) {
    EXPECT_THROW((LockToken{"", "token"}), std::invalid_argument);
    EXPECT_THROW((LockToken{"lock:k", ""}), std::invalid_argument);
}

TEST(RandomToken, is_32_hexadecimal_digits_and_never_the_same) {
    std::set<std::string> seen;
    for (int i = 0; i < 10'000; ++i) {
        const kunci::detail::RandomToken token;
        ASSERT_EQ(token.view().size(), 32U);
        ASSERT_EQ(token.view().find_first_not_of("0123456789abcdef"), std::string_view::npos);
        ASSERT_TRUE(seen.emplace(token.view()).second);
    }
}

TEST(RandomToken, uses_every_digit_at_every_place) {
    std::array<std::set<char>, 32> digits;
    for (int i = 0; i < 1000; ++i) {
        const kunci::detail::RandomToken token;
        for (std::size_t at = 0; at < digits.size(); ++at) digits.at(at).insert(token.view()[at]);
    }
    // 1000 draws miss one given digit of 16 with probability 1e-28.
    for (const auto& seen : digits) EXPECT_EQ(seen.size(), 16U);
}

}  // namespace
