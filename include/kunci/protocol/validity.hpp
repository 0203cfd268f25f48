#pragma once

#include <kunci/time.hpp>

#include <chrono>
#include <cmath>
#include <cstddef>

namespace kunci::protocol {

/// What a lease loses besides drift: 1 ms for the server's clock, which counts whole milliseconds, and 1 ms to
/// spare for servers that end a key at its last millisecond instead of after it.
inline constexpr Duration granularity = std::chrono::milliseconds{2};

/// How long the client may believe in a lock from the instant before it asked for it, when the server keeps it
/// for `ttl`: `ttl - ceil(drift_factor * ttl) - 2 ms`. If client and server clocks run at rates within
/// `drift_factor` of each other, the client's belief ends before the server's key does. Zero or less means that
/// such a lock could never be believed in.
[[nodiscard]] inline Duration validity(Duration ttl, double drift_factor) {
    const auto drift = std::ceil(static_cast<double>(ttl.count()) * drift_factor);
    return ttl - Duration{static_cast<Duration::rep>(drift)} - granularity;
}

/// How many of `nodes` must agree, so that any two groups that agree share one: of all that are configured,
/// whether or not they can be reached.
[[nodiscard]] constexpr std::size_t quorum_of(std::size_t nodes) {
    return nodes / 2 + 1;
}

}  // namespace kunci::protocol
