#pragma once

#include "log.hpp"

#include <cstdint>
#include <string>
#include <vector>

// What happened, in values that can also be written by hand. Instants are in nanoseconds; 0: never.
namespace kunci::campaign {

/// A tenure as its holder saw it.
struct Tenure {
    int lock = 0;
    int process = 0;
    int thread = 0;
    bool guarded = true;
    std::string token = {};
    std::int64_t entered = 0;
    std::int64_t last_held = 0;
    std::int64_t valid_until = 0;
    std::int64_t lost_at = 0;
    std::int64_t valid_when_lost = 0;
    int losses = 0;
    std::int64_t release_begun = 0;
    ReleaseResult release_result = ReleaseResult::none;
};

/// How a tenure ended on the server.
enum class End { not_yet, deleted, expired, overwritten };

/// A tenure as the server saw it.
struct ServerTenure {
    std::string key = {};
    std::string token = {};
    std::int64_t last_expiry = 0;  ///< Of the server's wall clock, in milliseconds.
    End end = End::not_yet;
};

/// The server's own record.
struct ServerRecord {
    std::vector<ServerTenure> tenures = {};
    std::vector<std::string> oddities = {};  ///< Writes that no lock does.
};

/// A process stood still.
struct Pause {
    int process = 0;
    std::int64_t from = 0;
    std::int64_t to = 0;
};

struct History {
    std::vector<Tenure> tenures = {};
    ServerRecord server = {};
    std::vector<Pause> pauses = {};
    std::vector<int> killed = {};  ///< Processes that were killed.
    std::int64_t wall_offset = 0;  ///< The server's wall clock less the holders' clock.
    std::int64_t ttl = 0;
    std::int64_t longest_stall = 0;  ///< How much later than it was sent a command may have been executed.
    bool replies_lost = false;       ///< Whether the faults can make an outcome unknown.
    std::vector<std::string> without_turn = {};  ///< Threads that got no turn when the faults were over.
    std::vector<std::string> keys_left = {};     ///< One TTL after everything had ended.
};

[[nodiscard]] inline std::vector<Tenure> read_tenures(const Log& log) {
    std::vector<Tenure> all;
    for (std::size_t i = 0; i < log.size(); ++i) {
        const TenureLog& each = log.tenures[i];
        if (!each.complete) continue;  // its process was killed in between
        all.push_back({each.lock, each.process, each.thread, each.guarded, std::string{each.token_view()},
                       each.entered, each.last_held, each.valid_until, each.lost_at, each.valid_when_lost,
                       each.losses, each.release_begun, each.release_result});
    }
    return all;
}

}  // namespace kunci::campaign
