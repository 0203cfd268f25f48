#include <kunci/connection/command.hpp>

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace {

using namespace std::string_view_literals;
using kunci::Command;

std::string wire(const Command& command) {
    return std::string{command.header().view()} + std::string{command.body()};
}

TEST(Command, keeps_its_arguments_in_order) {
    Command command{"SET"};
    command.add_key("k").add("v").add(60);
    ASSERT_EQ(command.size(), 4U);
    EXPECT_EQ(command.name(), "SET");
    EXPECT_EQ(command[1], "k");
    EXPECT_EQ(command[2], "v");
    EXPECT_EQ(command[3], "60");
}

TEST(Command, is_in_wire_format_from_the_start) {
    Command command{"SET"};
    command.add_key("a\r\nb").add(""sv);
    EXPECT_EQ(wire(command), "*3\r\n$3\r\nSET\r\n$4\r\na\r\nb\r\n$0\r\n\r\n");
}

TEST(Command, takes_any_bytes_and_any_length) {
    const std::string long_key(100'000, '\0');
    Command command{"GET"};
    command.add_key(long_key);
    EXPECT_EQ(command[1], long_key);
    EXPECT_EQ(wire(command), "*2\r\n$3\r\nGET\r\n$100000\r\n" + long_key + "\r\n");
}

TEST(Command, writes_integers_in_decimal) {
    Command command{"X"};
    command.add(std::numeric_limits<long long>::min()).add(std::numeric_limits<unsigned long long>::max());
    EXPECT_EQ(command[1], "-9223372036854775808");
    EXPECT_EQ(command[2], "18446744073709551615");
}

TEST(Command, routes_by_its_first_key) {
    Command command{"EVALSHA"};
    EXPECT_EQ(command.routing_key(), "");
    command.add("digest").add(2).add_key("first").add_key("second");
    EXPECT_EQ(command.routing_key(), "first");
}

TEST(Command, owns_its_bytes) {
    std::string key = "original";
    Command command{"GET"};
    command.add_key(key);
    const Command copy = command;
    key.assign("changed!");
    command = Command{"PING"};
    EXPECT_EQ(copy[1], "original");
    EXPECT_EQ(command.name(), "PING");
}

TEST(Command, holds_as_many_arguments_as_it_says) {
    Command command{"0"};
    for (std::size_t i = 1; i < Command::capacity; ++i) command.add(i);
    EXPECT_EQ(command.size(), Command::capacity);
    EXPECT_EQ(command[Command::capacity - 1], "23");
    EXPECT_EQ(command.header().view(), "*24\r\n");
}

}  // namespace
