#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kunci::scripts {

/// The digest by which Redis names a script, as 40 hexadecimal digits; SHA-1 as in RFC 3174, for compile
/// time. It names texts, it protects nothing.
[[nodiscard]] constexpr std::array<char, 40> sha1_hex(std::string_view text) {
    std::array<std::uint32_t, 5> h{0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0};
    const std::uint64_t bits = std::uint64_t{text.size()} * 8;
    const std::size_t blocks = (text.size() + 8) / 64 + 1;

    // The text, a one bit, zeros, and the length in bits as the last eight bytes.
    const auto byte_at = [&](std::size_t i) -> std::uint32_t {
        if (i < text.size()) return static_cast<unsigned char>(text[i]);
        if (i == text.size()) return 0x80;
        const std::size_t from_end = blocks * 64 - 1 - i;
        return from_end < 8 ? static_cast<std::uint32_t>(bits >> (8 * from_end) & 0xFF) : 0;
    };

    for (std::size_t block = 0; block < blocks; ++block) {
        std::array<std::uint32_t, 80> w{};
        for (std::size_t i = 0; i < 16; ++i) {
            const std::size_t at = block * 64 + i * 4;
            w[i] = byte_at(at) << 24 | byte_at(at + 1) << 16 | byte_at(at + 2) << 8 | byte_at(at + 3);
        }
        for (std::size_t i = 16; i < 80; ++i) {
            w[i] = std::rotl(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
        }
        auto [a, b, c, d, e] = h;
        for (std::size_t i = 0; i < 80; ++i) {
            std::uint32_t f = 0;
            std::uint32_t k = 0;
            if (i < 20) {
                f = (b & c) | (~b & d);
                k = 0x5A827999;
            } else if (i < 40) {
                f = b ^ c ^ d;
                k = 0x6ED9EBA1;
            } else if (i < 60) {
                f = (b & c) | (b & d) | (c & d);
                k = 0x8F1BBCDC;
            } else {
                f = b ^ c ^ d;
                k = 0xCA62C1D6;
            }
            const std::uint32_t next = std::rotl(a, 5) + f + e + k + w[i];
            e = d;
            d = c;
            c = std::rotl(b, 30);
            b = a;
            a = next;
        }
        h = {h[0] + a, h[1] + b, h[2] + c, h[3] + d, h[4] + e};
    }

    std::array<char, 40> hex{};
    for (std::size_t i = 0; i < hex.size(); ++i) {
        hex[i] = "0123456789abcdef"[h[i / 8] >> (28 - 4 * (i % 8)) & 0xF];
    }
    return hex;
}

}  // namespace kunci::scripts
