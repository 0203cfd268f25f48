#include <kunci/scripts/lock_scripts.hpp>
#include <kunci/scripts/sha1.hpp>

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace {

using kunci::scripts::Form;
using kunci::scripts::Script;
using kunci::scripts::sha1_hex;

std::string sha1(std::string_view text) {
    const auto digits = sha1_hex(text);
    return {digits.begin(), digits.end()};
}

TEST(Sha1, agrees_with_the_published_examples) {
    // RFC 3174 section 7.3 and FIPS 180.
    EXPECT_EQ(sha1("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
    EXPECT_EQ(sha1(""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    EXPECT_EQ(sha1("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
              "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
    EXPECT_EQ(sha1(std::string(1'000'000, 'a')), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

TEST(Sha1, pads_right_at_every_length_around_a_block) {
    // sha1sum of so many letters x.
    EXPECT_EQ(sha1(std::string(55, 'x')), "cef734ba81a024479e09eb5a75b6ddae62e6abf1");
    EXPECT_EQ(sha1(std::string(56, 'x')), "901305367c259952f4e7af8323f480d59f81335b");
    EXPECT_EQ(sha1(std::string(63, 'x')), "0ddc4e0cccd9a12850deb5abb0853a4425559fec");
    EXPECT_EQ(sha1(std::string(64, 'x')), "bb2fa3ee7afb9f54c6dfb5d021f14b1ffe40c163");
}

class EveryScript : public testing::TestWithParam<Script> {};

TEST_P(EveryScript, states_its_contract_in_the_first_line) {
    const auto text = GetParam().text;
    const auto first = text.substr(0, text.find('\n'));
    EXPECT_TRUE(first.starts_with("-- KEYS: ")) << first;
    EXPECT_NE(first.find("ARGV: "), std::string_view::npos) << first;
    EXPECT_NE(first.find("returns "), std::string_view::npos) << first;
}

TEST_P(EveryScript, is_called_by_digest_first_and_by_text_after_that) {
    const auto& script = GetParam();
    const auto by_digest = kunci::scripts::call(script, Form::digest, 1);
    EXPECT_EQ(by_digest.name(), "EVALSHA");
    EXPECT_EQ(by_digest[1], sha1(script.text));
    EXPECT_EQ(by_digest[2], "1");
    const auto by_text = kunci::scripts::call(script, Form::text, 1);
    EXPECT_EQ(by_text.name(), "EVAL");
    EXPECT_EQ(by_text[1], script.text);
}

INSTANTIATE_TEST_SUITE_P(Scripts, EveryScript,
                         testing::Values(kunci::scripts::claim, kunci::scripts::refresh,
                                         kunci::scripts::release));

}  // namespace
