#include <kunci/detail/small_bytes.hpp>

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace {

using Bytes = kunci::detail::SmallBytes<8>;

TEST(SmallBytes, keeps_any_bytes_inline_and_beyond) {
    using namespace std::string_view_literals;
    EXPECT_EQ(Bytes{}.view(), ""sv);
    EXPECT_EQ(Bytes{"a\0b"sv}.view(), "a\0b"sv);
    EXPECT_EQ(Bytes{"12345678"}.view(), "12345678"sv);
    EXPECT_EQ(Bytes{"123456789"}.view(), "123456789"sv);
}

TEST(SmallBytes, grows_over_the_edge_byte_by_byte) {
    Bytes bytes;
    std::string expected;
    for (char c = 'a'; c <= 'z'; ++c) {
        bytes.append({&c, 1});
        expected += c;
        ASSERT_EQ(bytes.view(), expected);
        ASSERT_EQ(bytes.size(), expected.size());
    }
}

TEST(SmallBytes, copies_and_moves_whatever_the_length) {
    for (const std::string text : {"", "short", "much longer than eight bytes"}) {
        const Bytes original{text};
        Bytes copy{original};
        EXPECT_EQ(copy, original);
        Bytes moved{std::move(copy)};
        EXPECT_EQ(moved.view(), text);
        Bytes assigned{"something else that is long"};
        assigned = original;
        EXPECT_EQ(assigned.view(), text);
        assigned = Bytes{"x"};
        EXPECT_EQ(assigned.view(), "x");
        assigned = std::move(moved);
        EXPECT_EQ(assigned.view(), text);
        const Bytes& self = assigned;
        assigned = self;
        EXPECT_EQ(assigned.view(), text);
    }
}

TEST(SmallBytes, starts_anew_after_it_was_moved_from) {
    Bytes bytes{"much longer than eight bytes"};
    const Bytes taken{std::move(bytes)};
    bytes.append("new");  // NOLINT(bugprone-use-after-move): that is what is tested
    EXPECT_EQ(bytes.view(), "new");
    EXPECT_EQ(taken.view(), "much longer than eight bytes");
}

}  // namespace
