#include <kunci/lock_key.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

namespace {

using namespace std::string_view_literals;
using kunci::LockKey;
using kunci::striped_key;

TEST(LockKey, is_the_prefix_and_the_name_exactly) {
    EXPECT_EQ((LockKey{"lock:", "daily-notif"}.view()), "lock:daily-notif");
    EXPECT_EQ((LockKey{"", "bare"}.view()), "bare");
    EXPECT_EQ((LockKey{"lock:", "a\0b"sv}.view()), "lock:a\0b"sv);
}

TEST(LockKey, refuses_an_empty_name) {
    EXPECT_THROW((LockKey{"lock:", ""}), std::invalid_argument);
}

TEST(LockKey, refuses_what_redis_cannot_take_and_says_how_long_it_is) {
    // The length is checked before a byte is read.
    const std::string_view too_long{"x", kunci::max_key_length};
    try {
        const LockKey key{"lock:", too_long};
        FAIL();
    } catch (const std::invalid_argument& e) {
        EXPECT_NE(std::string_view{e.what()}.find("536870917 bytes"), std::string_view::npos) << e.what();
    }
}

TEST(StripedKey, puts_an_id_on_the_stripe_of_its_remainder) {
    EXPECT_EQ(striped_key("stock", 37, 16), "stock:5");
    EXPECT_EQ(striped_key("stock", 16, 16), "stock:0");
    EXPECT_EQ(striped_key("stock", std::uint64_t{18446744073709551615U}, 16), "stock:15");
    EXPECT_EQ(striped_key("stock", 5, 1), "stock:0");
}

TEST(StripedKey, counts_negative_ids_from_zero_too) {
    EXPECT_EQ(striped_key("stock", -1, 16), "stock:15");
    EXPECT_EQ(striped_key("stock", -16, 16), "stock:0");
    EXPECT_EQ(striped_key("stock", -17, 16), "stock:15");
    EXPECT_EQ(striped_key("stock", std::numeric_limits<std::int64_t>::min(), 16), "stock:0");
}

TEST(StripedKey, keeps_one_id_on_one_stripe_and_uses_them_all) {
    std::array<int, 16> hits{};
    for (int id = -800; id < 800; ++id) {
        const auto key = striped_key("k", id, 16);
        ASSERT_EQ(key, striped_key("k", static_cast<long long>(id), 16));
        ++hits.at(static_cast<std::size_t>(std::stoi(key.substr(2))));
    }
    for (const int hit : hits) EXPECT_EQ(hit, 100);
}

TEST(StripedKey, needs_a_stripe) {
    EXPECT_THROW(static_cast<void>(striped_key("k", 1, 0)), std::invalid_argument);
}

}  // namespace
