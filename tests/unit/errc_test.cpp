#include <kunci/errc.hpp>
#include <kunci/error.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <system_error>
#include <vector>

namespace kunci {
namespace {

constexpr auto groups = {Errc::unreachable, Errc::maybe_executed, Errc::server_refused, Errc::not_permitted,
                         Errc::misconfigured};

/// Every value with a message of its own: an enumeration cannot be asked for its values.
std::vector<Errc> every_errc() {
    std::vector<Errc> found;
    for (int value = 1; value < 100; ++value) {
        const auto code = static_cast<Errc>(value);
        if (make_error_code(code).message() != "unknown kunci error") found.push_back(code);
    }
    return found;
}

TEST(Errc, has_a_message_of_its_own_for_every_value) {
    std::set<std::string> messages;
    for (const auto code : every_errc()) messages.insert(make_error_code(code).message());
    EXPECT_EQ(messages.size(), every_errc().size());
    EXPECT_EQ(messages.size(), 32U);
}

TEST(Errc, compares_as_itself_and_as_its_group_and_as_nothing_else) {
    for (const auto code : every_errc()) {
        for (const auto asked : every_errc()) {
            const bool expected = asked == code || asked == group_of(code);
            EXPECT_EQ(make_error_code(code) == asked, expected)
                << make_error_code(code).message() << " / " << make_error_code(asked).message();
        }
    }
}

TEST(Errc, is_in_a_group_unless_it_is_about_the_lock_itself) {
    for (const auto code : every_errc()) {
        const bool in_group = std::ranges::find(groups, group_of(code)) != groups.end();
        const bool alone = code == Errc::lock_held || code == Errc::cancelled || code == Errc::lease_lost;
        EXPECT_NE(in_group, alone) << make_error_code(code).message();
        EXPECT_EQ(group_of(group_of(code)), group_of(code));
    }
}

TEST(Errc, is_no_error_of_the_operating_system) {
    EXPECT_FALSE(std::error_code(static_cast<int>(Errc::connection_refused), std::generic_category()) ==
                 Errc::connection_refused);
    EXPECT_FALSE(make_error_code(Errc::connection_refused) == std::errc::connection_refused);
    EXPECT_FALSE(std::error_code{} == Errc::lock_held);
}

TEST(Error, tells_its_errc) {
    const ConnectionError error{Errc::no_descriptors, "kunci: cannot acquire \"k\""};
    EXPECT_EQ(error.errc(), Errc::no_descriptors);
    EXPECT_TRUE(error.code() == Errc::unreachable);
    EXPECT_FALSE(error.code() == Errc::maybe_executed);
}

}  // namespace
}  // namespace kunci
