#pragma once

#include <kunci/hiredis.hpp>
#include <kunci/kunci.hpp>

#include "child_process.hpp"
#include "redis_server.hpp"
#include "relay.hpp"
#include "slack.hpp"

#include <poll.h>

#include <chrono>
#include <string>
#include <string_view>
#include <utility>

namespace kunci::test {

using Locks = DistributedLock<HiredisConnection>;

inline Locks client(const std::string& url, ClientOptions options = {}) {
    return Locks{HiredisConnection{url}, std::move(options)};
}
inline Locks client(const RedisServer& server, ClientOptions options = {}) {
    return client(server.url(), std::move(options));
}
inline Locks client(const Relay& relay, ClientOptions options = {}) {
    return client(relay.url(), std::move(options));
}

std::chrono::nanoseconds time_of(const auto& action) {
    const auto start = std::chrono::steady_clock::now();
    action();
    return std::chrono::steady_clock::now() - start;
}

/// For what a time is the subject: an outage that lasts so long, a body that takes so long.
inline void let_pass(std::chrono::milliseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    for (auto left = time; left.count() > 0;) {
        ::poll(nullptr, 0, static_cast<int>(left.count()));
        left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    }
}

/// Whether the key is gone in time.
inline bool gone(const RedisServer& server, std::string_view key, std::chrono::milliseconds patience) {
    return poll_until([&] { return server.command({"EXISTS", key}).integer() == 0; }, patience);
}

}  // namespace kunci::test
