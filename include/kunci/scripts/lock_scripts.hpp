#pragma once

#include <kunci/scripts/script.hpp>
#include <kunci/scripts/sha1.hpp>

#include <algorithm>
#include <string_view>

// Each script states its contract in its first line, gets every key in KEYS, and does its one decisive write
// last, since a script that fails half-way is not rolled back.

namespace kunci::scripts {

/// "Mine? Then extend. Free? Take it. Else refused." Safe to repeat with the same token, whatever became of
/// an earlier attempt. A TTL below 1 would delete the key (PEXPIRE), so it is refused.
inline constexpr Script claim{
    R"lua(-- KEYS: 1 lock key; ARGV: 1 token, 2 ttl in ms; returns {1, ttl before or -2} if held by the token now, else {0, the holder's ttl}
if tonumber(ARGV[2]) < 1 then return redis.error_reply('ERR kunci: the ttl must be at least 1 ms') end
local owner = redis.call('get', KEYS[1])
if owner and owner ~= ARGV[1] then return {0, redis.call('pttl', KEYS[1])} end
if not owner then
  redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2])
  return {1, -2}
end
local left = redis.call('pttl', KEYS[1])
if left < tonumber(ARGV[2]) then redis.call('pexpire', KEYS[1], ARGV[2]) end
return {1, left}
)lua",
    "b80223934c7b3856e9b21a78f878536078d2c0fa"};

/// Extend only: it never shortens, so a late duplicate is harmless, and never creates, so a tenure that is
/// over stays over.
inline constexpr Script refresh{
    R"lua(-- KEYS: 1 lock key; ARGV: 1 token, 2 ttl in ms; returns the ttl before (-1: there was none), or -2 if the token does not hold it
if tonumber(ARGV[2]) < 1 then return redis.error_reply('ERR kunci: the ttl must be at least 1 ms') end
if redis.call('get', KEYS[1]) ~= ARGV[1] then return -2 end
local left = redis.call('pttl', KEYS[1])
if left < tonumber(ARGV[2]) then redis.call('pexpire', KEYS[1], ARGV[2]) end
return left
)lua",
    "7c05b622b866394791bc96f06c02fa3c23d6320e"};

/// Compare and delete: nobody else's lock is ever touched.
inline constexpr Script release{
    R"lua(-- KEYS: 1 lock key; ARGV: 1 token; returns 1 if the token held it and it is free now, else 0
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('del', KEYS[1])
)lua",
    "819c3bf3951e5944f75c23cefe34aa578062c614"};

namespace detail {
[[nodiscard]] constexpr bool digest_matches(const Script& script) {
    return std::ranges::equal(sha1_hex(script.text), script.sha1);
}
}  // namespace detail

static_assert(detail::digest_matches(claim));
static_assert(detail::digest_matches(refresh));
static_assert(detail::digest_matches(release));

}  // namespace kunci::scripts
