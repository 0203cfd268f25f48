#include <kunci/adapters/hiredis/reply_parser.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using kunci::Reply;
using kunci::hiredis_detail::ReplyParser;
using Progress = ReplyParser::Progress;

Reply parse(std::string_view bytes) {
    ReplyParser parser;
    EXPECT_EQ(parser.advance(bytes), Progress::complete) << bytes << parser.error();
    EXPECT_FALSE(parser.has_more());
    return parser.take();
}

TEST(ReplyParser, reads_every_simple_kind) {
    EXPECT_EQ(parse("+OK\r\n"), Reply::status("OK"));
    EXPECT_EQ(parse("+\r\n"), Reply::status(""));
    EXPECT_EQ(parse("-NOSCRIPT No matching script.\r\n"), Reply::error("NOSCRIPT No matching script."));
    EXPECT_EQ(parse(":42\r\n"), Reply::integer(42));
    EXPECT_EQ(parse(":-9223372036854775808\r\n"), Reply::integer(std::numeric_limits<std::int64_t>::min()));
    EXPECT_EQ(parse(":9223372036854775807\r\n"), Reply::integer(std::numeric_limits<std::int64_t>::max()));
    EXPECT_EQ(parse("$-1\r\n"), Reply::nil());
    EXPECT_EQ(parse("$0\r\n\r\n"), Reply::string(""));
}

TEST(ReplyParser, reads_any_bytes_in_a_string) {
    const std::string bytes{"a\0\r\n$3\r\n\xff", 10};
    EXPECT_EQ(parse("$10\r\n" + bytes + "\r\n"), Reply::string(bytes));
}

TEST(ReplyParser, reads_arrays_with_arrays_nils_and_errors_inside) {
    const Reply expected = Reply::array(
        {Reply::integer(1),
         Reply::array({Reply::string("a"), Reply::array({}), Reply::nil(), Reply::error("ERR x")}),
         Reply::nil(), Reply::array({Reply::array({Reply::status("deep")})}), Reply::string("last")});
    EXPECT_EQ(parse("*5\r\n:1\r\n*4\r\n$1\r\na\r\n*0\r\n$-1\r\n-ERR x\r\n*-1\r\n*1\r\n*1\r\n+deep\r\n"
                    "$4\r\nlast\r\n"),
              expected);
}

TEST(ReplyParser, reads_empty_and_nil_arrays) {
    EXPECT_EQ(parse("*0\r\n"), Reply::array({}));
    EXPECT_EQ(parse("*-1\r\n"), Reply::nil());
}

TEST(ReplyParser, reads_a_long_array) {
    std::string bytes = "*1000\r\n";
    std::vector<Reply> elements;
    for (int i = 0; i < 1000; ++i) {
        bytes += ":" + std::to_string(i) + "\r\n";
        elements.push_back(Reply::integer(i));
    }
    EXPECT_EQ(parse(bytes), Reply::array(elements));
}

TEST(ReplyParser, waits_for_the_last_byte_wherever_the_bytes_are_cut) {
    const std::string bytes = "*3\r\n$5\r\nab\r\nc\r\n*2\r\n:7\r\n-ERR no\r\n+OK\r\n";
    const Reply expected =
        Reply::array({Reply::string("ab\r\nc"), Reply::array({Reply::integer(7), Reply::error("ERR no")}),
                      Reply::status("OK")});
    ReplyParser parser;
    for (int round = 0; round < 3; ++round) {
        for (std::size_t i = 0; i + 1 < bytes.size(); ++i) {
            ASSERT_EQ(parser.advance({&bytes[i], 1}), Progress::incomplete) << i;
        }
        ASSERT_EQ(parser.advance({&bytes.back(), 1}), Progress::complete);
        EXPECT_EQ(parser.take(), expected);
    }
}

TEST(ReplyParser, gives_replies_that_came_together_one_after_the_other) {
    ReplyParser parser;
    ASSERT_EQ(parser.advance("+OK\r\n:1\r\n$2\r\nx"), Progress::complete);
    EXPECT_EQ(parser.take(), Reply::status("OK"));
    EXPECT_TRUE(parser.has_more());
    ASSERT_EQ(parser.advance({}), Progress::complete);
    EXPECT_EQ(parser.take(), Reply::integer(1));
    EXPECT_TRUE(parser.has_more());
    EXPECT_EQ(parser.advance({}), Progress::incomplete);
    ASSERT_EQ(parser.advance("y\r\n"), Progress::complete);
    EXPECT_EQ(parser.take(), Reply::string("xy"));
    EXPECT_FALSE(parser.has_more());
}

TEST(ReplyParser, reads_a_string_larger_than_any_buffer) {
    const std::string bytes(3 * 1024 * 1024, 'z');
    EXPECT_EQ(parse("$" + std::to_string(bytes.size()) + "\r\n" + bytes + "\r\n"), Reply::string(bytes));
}

TEST(ReplyParser, finds_malformed_bytes_and_says_so_from_then_on) {
    for (const char* bytes : {"hello\r\n", "\r\n", "*x\r\n", "$x\r\n", ":1x\r\n", "*-2\r\n",
                              ":99999999999999999999\r\n", "*2\r\n:1\r\n?\r\n"}) {
        ReplyParser parser;
        EXPECT_EQ(parser.advance(bytes), Progress::malformed) << bytes;
        EXPECT_NE(parser.error(), "") << bytes;
        EXPECT_EQ(parser.advance("+OK\r\n"), Progress::malformed) << bytes;
    }
}

TEST(ReplyParser, does_not_make_room_for_elements_that_are_only_claimed) {
    ReplyParser parser;
    EXPECT_EQ(parser.advance("*2147483647\r\n:1\r\n"), Progress::incomplete);
}

TEST(ReplyParser, refuses_nesting_that_no_server_sends) {
    std::string bytes;
    for (int i = 0; i < 100000; ++i) bytes += "*1\r\n";
    ReplyParser parser;
    EXPECT_EQ(parser.advance(bytes + ":1\r\n"), Progress::malformed);
}

TEST(ReplyParser, can_be_dropped_in_the_middle_of_a_reply) {
    ReplyParser parser;
    EXPECT_EQ(parser.advance("*3\r\n$3\r\nabc\r\n*2\r\n:1\r\n$10\r\nab"), Progress::incomplete);
}

TEST(ReplyParser, leaves_the_frames_of_hiredis_by_a_null_pointer_when_memory_runs_out) {
    kunci::hiredis_detail::ReplyBuilder builder;
    redisReadTask task{};
    task.privdata = &builder;
    const auto out_of_memory = [](auto&) { throw std::bad_alloc{}; };
    EXPECT_EQ(kunci::hiredis_detail::ReaderCallbacks::build(&task, out_of_memory), nullptr);
    EXPECT_NE(kunci::hiredis_detail::ReaderCallbacks::on_integer(&task, 7), nullptr);
    EXPECT_EQ(builder.take(), Reply::integer(7));
}

#if HIREDIS_MAJOR >= 1
TEST(ReplyParser, maps_the_kinds_of_the_newer_protocol_to_those_a_reply_has) {
    EXPECT_EQ(parse("_\r\n"), Reply::nil());
    EXPECT_EQ(parse("#t\r\n"), Reply::integer(1));
    EXPECT_EQ(parse("#f\r\n"), Reply::integer(0));
    EXPECT_EQ(parse(",1.5\r\n"), Reply::string("1.5"));
    EXPECT_EQ(parse("(12345678901234567890\r\n"), Reply::string("12345678901234567890"));
    EXPECT_EQ(parse("=7\r\ntxt:abc\r\n"), Reply::string("abc"));
    EXPECT_EQ(parse("%1\r\n+k\r\n:1\r\n"), Reply::array({Reply::status("k"), Reply::integer(1)}));
    EXPECT_EQ(parse("~1\r\n:1\r\n"), Reply::array({Reply::integer(1)}));
}
#endif

}  // namespace
