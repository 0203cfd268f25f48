#pragma once

#include <kunci/protocol/validity.hpp>
#include <kunci/time.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace kunci::protocol {

/// What a lease is run by. Whoever makes it has checked it.
struct LeaseTerms {
    std::size_t nodes = 1;
    /// Whole milliseconds, at least one.
    Duration ttl = std::chrono::seconds{30};
    double drift_factor = 0.01;
    /// The longest that one command may take.
    Duration operation_timeout = std::chrono::seconds{1};
    bool auto_refresh = true;
    std::optional<Duration> max_hold = std::nullopt;

    [[nodiscard]] std::size_t quorum() const { return quorum_of(nodes); }
    [[nodiscard]] Duration validity() const { return protocol::validity(ttl, drift_factor); }
    /// A refresh is due this long after the last successful one was sent; sooner where the clocks' allowance
    /// leaves little of the TTL.
    [[nodiscard]] Duration refresh_interval() const { return std::min(ttl / 3, validity() / 2); }
    /// Short enough that after a first refresh that hangs three more fit into the lease.
    [[nodiscard]] Duration refresh_timeout() const { return std::min(operation_timeout, ttl / 6); }
    [[nodiscard]] Duration refresh_retry_interval() const {
        return std::max<Duration>(ttl / 20, std::chrono::milliseconds{1});
    }
};

/// Spreads instants, so that clients do not march in step; it keeps no secret. SplitMix64 (Steele, Lea, Flood:
/// Fast Splittable Pseudorandom Number Generators, 2014).
class Jitter {
  public:
    explicit Jitter(std::uint64_t seed) : state_{seed} {}

    /// A duration from 0 to `most`.
    [[nodiscard]] Duration up_to(Duration most) {
        state_ += 0x9E3779B97F4A7C15U;
        std::uint64_t z = state_;
        z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
        z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
        z ^= z >> 31U;
        return Duration{static_cast<Duration::rep>(z % (static_cast<std::uint64_t>(most.count()) + 1))};
    }

  private:
    std::uint64_t state_;
};

}  // namespace kunci::protocol
