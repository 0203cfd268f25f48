#include <kunci/adapters/hiredis/redis_url.hpp>

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <string_view>

namespace {

using kunci::parse_redis_url;
using kunci::RedisUrl;

/// What the refusal of a URL says; "" if it is not refused.
std::string refusal(std::string_view url) {
    try {
        static_cast<void>(parse_redis_url(url));
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return {};
}

#define EXPECT_REFUSED(url, words) EXPECT_NE(refusal(url).find(words), std::string::npos) << refusal(url)

TEST(RedisUrl, has_the_port_6379_and_the_db_0_unless_it_says_otherwise) {
    const RedisUrl url = parse_redis_url("redis://cache.example.org");
    EXPECT_EQ(url.host, "cache.example.org");
    EXPECT_EQ(url.port, 6379);
    EXPECT_EQ(url.database, 0);
    EXPECT_FALSE(url.tls);
    EXPECT_FALSE(url.is_unix_socket());
    EXPECT_FALSE(url.has_credentials());
}

TEST(RedisUrl, gives_every_part_of_a_full_url) {
    const RedisUrl url = parse_redis_url("rediss://worker:s3cret@10.0.0.7:7000/12");
    EXPECT_TRUE(url.tls);
    EXPECT_EQ(url.user, "worker");
    EXPECT_EQ(url.password, "s3cret");
    EXPECT_EQ(url.host, "10.0.0.7");
    EXPECT_EQ(url.port, 7000);
    EXPECT_EQ(url.database, 12);
}

TEST(RedisUrl, takes_a_password_without_a_user) {
    const RedisUrl url = parse_redis_url("redis://:s3cret@h");
    EXPECT_EQ(url.user, "");
    EXPECT_EQ(url.password, "s3cret");
    EXPECT_TRUE(url.has_credentials());
}

TEST(RedisUrl, takes_a_user_without_a_password) {
    const RedisUrl url = parse_redis_url("redis://worker@h");
    EXPECT_EQ(url.user, "worker");
    EXPECT_EQ(url.password, "");
    EXPECT_TRUE(url.has_credentials());
}

TEST(RedisUrl, decodes_user_and_password) {
    const RedisUrl url = parse_redis_url("redis://a%3ab:p%40%2F%25%ff@h");
    EXPECT_EQ(url.user, "a:b");
    EXPECT_EQ(url.password, "p@/%\xff");
}

TEST(RedisUrl, keeps_colons_and_at_signs_that_can_only_belong_to_the_password) {
    const RedisUrl url = parse_redis_url("redis://u:a:b@c@h");
    EXPECT_EQ(url.user, "u");
    EXPECT_EQ(url.password, "a:b@c");
    EXPECT_EQ(url.host, "h");
}

TEST(RedisUrl, takes_an_ipv6_address_in_brackets) {
    const RedisUrl url = parse_redis_url("redis://:p@[::1]:7001/2");
    EXPECT_EQ(url.host, "::1");
    EXPECT_EQ(url.port, 7001);
    EXPECT_EQ(url.database, 2);
    EXPECT_EQ(parse_redis_url("redis://[fe80::1%25eth0]").host, "fe80::1%eth0");
}

TEST(RedisUrl, takes_a_unix_socket_with_credentials_and_db) {
    const RedisUrl url = parse_redis_url("unix://worker:p%2Fw@/run/my%20redis.sock?db=3");
    EXPECT_TRUE(url.is_unix_socket());
    EXPECT_EQ(url.socket_path, "/run/my redis.sock");
    EXPECT_EQ(url.user, "worker");
    EXPECT_EQ(url.password, "p/w");
    EXPECT_EQ(url.database, 3);
    EXPECT_EQ(parse_redis_url("unix:///run/redis.sock").database, 0);
}

TEST(RedisUrl, does_not_mind_the_case_of_the_scheme_nor_an_empty_db) {
    EXPECT_EQ(parse_redis_url("REDIS://h/").database, 0);
    EXPECT_TRUE(parse_redis_url("Rediss://h").tls);
}

TEST(RedisUrl, has_an_address_for_messages_without_user_and_password) {
    EXPECT_EQ(parse_redis_url("redis://u:p@h:1/2").address(), "h:1/2");
    EXPECT_EQ(parse_redis_url("redis://[::1]").address(), "[::1]:6379/0");
    EXPECT_EQ(parse_redis_url("unix://u:p@/run/r.sock?db=1").address(), "/run/r.sock");
}

TEST(RedisUrl, refuses_an_unknown_scheme_and_names_it) {
    EXPECT_REFUSED("http://h", "unknown scheme 'http'");
    EXPECT_REFUSED("http://h", "redis://");
    EXPECT_REFUSED("redisss://h", "unknown scheme 'redisss'");
}

TEST(RedisUrl, refuses_what_has_no_scheme) {
    EXPECT_REFUSED("localhost:6379", "no scheme");
    EXPECT_REFUSED("://h", "no scheme");
    EXPECT_REFUSED(" redis://h", "no scheme");
    EXPECT_REFUSED("redis:h", "no scheme");
}

TEST(RedisUrl, refuses_an_empty_url) {
    EXPECT_REFUSED("", "is empty");
}

TEST(RedisUrl, refuses_a_nul_byte_plain_or_escaped) {
    EXPECT_REFUSED(std::string_view("redis://h\0x", 11), "NUL");
    EXPECT_REFUSED("redis://:a%00b@h", "NUL byte (%00) in its password");
    EXPECT_REFUSED("unix:///run/a%00b", "NUL byte (%00) in its path");
}

TEST(RedisUrl, refuses_a_missing_host) {
    EXPECT_REFUSED("redis://", "no host");
    EXPECT_REFUSED("redis:///0", "no host");
    EXPECT_REFUSED("redis://:6379", "no host");
    EXPECT_REFUSED("redis://u:p@", "no host");
    EXPECT_REFUSED("redis://[]", "no host");
}

TEST(RedisUrl, refuses_a_bad_port) {
    for (const char* port : {"0", "65536", "99999999999999999999", "-1", "+1", "x", "1x", "", " 1"}) {
        EXPECT_REFUSED("redis://h:" + std::string{port}, "bad port; expected a number from 1 to 65535");
        EXPECT_REFUSED("redis://[::1]:" + std::string{port}, "bad port");
    }
    EXPECT_REFUSED("redis://[::1]7000", "bad port");
    EXPECT_EQ(parse_redis_url("redis://h:65535").port, 65535);
}

TEST(RedisUrl, refuses_a_bad_db) {
    for (const char* database : {"-1", "-0", "x", "1x", "1/", "2147483648", "+1"}) {
        EXPECT_REFUSED("redis://h/" + std::string{database}, "bad db after the '/'; expected a number");
        EXPECT_REFUSED("unix:///s?db=" + std::string{database}, "bad db in '?db='; expected a number");
    }
    EXPECT_REFUSED("unix:///s?db=", "bad db");
}

TEST(RedisUrl, refuses_a_bad_percent_escape_and_says_where) {
    EXPECT_REFUSED("redis://u%:p@h", "bad percent escape in its user");
    EXPECT_REFUSED("redis://u:p%4@h", "bad percent escape in its password");
    EXPECT_REFUSED("redis://u:p%4x@h", "bad percent escape in its password");
    EXPECT_REFUSED("redis://u:p%-1@h", "bad percent escape in its password");
    EXPECT_REFUSED("unix:///a%zz", "bad percent escape in its path");
}

TEST(RedisUrl, refuses_an_unknown_query_parameter_and_names_it) {
    EXPECT_REFUSED("unix:///s?timeout=3", "unknown query parameter 'timeout'");
    EXPECT_REFUSED("unix:///s?db=1&x=2", "unknown query parameter 'x'");
    EXPECT_REFUSED("redis://h/0?db=1", "unknown query parameter 'db'");
    EXPECT_REFUSED("redis://h/0?db=1", "redis://host:port/db");
    EXPECT_REFUSED("unix:///s?db", "not of the form ?name=value");
}

TEST(RedisUrl, refuses_an_unbalanced_bracket) {
    EXPECT_REFUSED("redis://[::1", "unbalanced bracket");
    EXPECT_REFUSED("redis://::1]", "unbalanced bracket");
    EXPECT_REFUSED("redis://x[::1]", "unbalanced bracket");
}

TEST(RedisUrl, refuses_an_ipv6_address_without_brackets_and_brackets_without_one) {
    EXPECT_REFUSED("redis://fe80::1", "must be in brackets");
    EXPECT_REFUSED("redis://[127.0.0.1]", "no IPv6 address");
    EXPECT_REFUSED("redis://[cafe]", "no IPv6 address");
}

TEST(RedisUrl, refuses_a_host_with_characters_that_no_host_has) {
    EXPECT_REFUSED("redis://a b", "no host name contains");
    EXPECT_REFUSED("redis://h\r\n", "no host name contains");
    EXPECT_REFUSED("redis://a%41", "no host name contains");
}

TEST(RedisUrl, refuses_a_fragment) {
    EXPECT_REFUSED("redis://h/0#x", "fragment");
    EXPECT_REFUSED("unix:///s#x", "fragment");
}

TEST(RedisUrl, refuses_a_unix_socket_without_a_path) {
    EXPECT_REFUSED("unix://", "no path");
    EXPECT_REFUSED("unix://run/redis.sock", "no path");
    EXPECT_REFUSED("unix://u:p@", "no path");
}

TEST(RedisUrl, never_repeats_a_password_however_it_is_misplaced) {
    for (const char* url : {
             "redis://:tops3cret",            // the host was forgotten: it looks like a port
             "redis://u:tops3cret/x@h",       // an unescaped '/': it looks like a port, the rest like a db
             "redis://u:x/tops3cret@h",       //
             "redis://u:x?tops3cret@h",       // an unescaped '?': it looks like a query
             "redis://u:x?tops3cret=1@h",     //
             "redis://u:x#tops3cret@h",       //
             "redis://u:tops3cret%4@h",       //
             "redis://u:tops3cret@",          //
             "redis://u:tops3cret@h:0",       //
             "redis://u:tops3cret@h/x",       //
             "redis://u:tops3cret@h?db=1",    //
             "u:tops3cret@h",                 //
             "u:tops3cret@redis://h",         //
             "unix://u:tops3cret/@/s",        //
             "unix://u:x/tops3cret@/s?db=x",  //
             "unix://u:tops3cret@/s?tops=1&x=2",  //
         }) {
        EXPECT_NE(refusal(url), "") << url;
        EXPECT_EQ(refusal(url).find("s3cret"), std::string::npos) << refusal(url);
    }
}

}  // namespace
