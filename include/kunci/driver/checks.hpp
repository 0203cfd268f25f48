#pragma once

#include <kunci/client_options.hpp>
#include <kunci/lock_options.hpp>
#include <kunci/protocol/lease_terms.hpp>

#include <chrono>
#include <stdexcept>
#include <string>

namespace kunci::driver {

/// The longest TTL: far from where the server's clock or ours would overflow.
inline constexpr Duration longest_ttl = std::chrono::hours{24} * 365 * 100;

/// The TTL as the server takes it, in whole milliseconds. Throws `std::invalid_argument` if it makes no sense.
[[nodiscard]] inline Duration checked_ttl(TimeSpan ttl, double drift_factor) {
    const Duration given = ttl.value();
    if (given < std::chrono::milliseconds{1}) {
        throw std::invalid_argument("kunci: ttl must be at least 1 ms, not " + std::to_string(given.count()) +
                                    " ns");
    }
    if (given > longest_ttl) throw std::invalid_argument("kunci: ttl must not be longer than 100 years");
    const Duration whole = std::chrono::ceil<std::chrono::milliseconds>(given);
    if (protocol::validity(whole, drift_factor) <= Duration::zero()) {
        throw std::invalid_argument(
            "kunci: a ttl of " + std::to_string(whole / std::chrono::milliseconds{1}) +
            " ms leaves nothing once the clocks' allowance is taken off (2 ms and drift_factor " +
            std::to_string(drift_factor) + " of it)");
    }
    return whole;
}

/// Throws `std::invalid_argument`, naming the option, if a value makes no sense.
inline void check(const LockOptions& options) {
    if (options.wait_timeout < TimeSpan{}) {
        throw std::invalid_argument("kunci: wait_timeout must not be negative");
    }
    if (options.retry_interval <= TimeSpan{}) {
        throw std::invalid_argument("kunci: retry_interval must be positive");
    }
    if (options.max_hold && *options.max_hold <= TimeSpan{}) {
        throw std::invalid_argument("kunci: max_hold must be positive");
    }
}

[[nodiscard]] inline protocol::LeaseTerms terms_of(const ClientOptions& client, TimeSpan ttl) {
    return {.ttl = checked_ttl(ttl, client.drift_factor),
            .drift_factor = client.drift_factor,
            .operation_timeout = client.operation_timeout};
}

[[nodiscard]] inline protocol::LeaseTerms terms_of(const ClientOptions& client, const LockOptions& options) {
    check(options);
    protocol::LeaseTerms terms = terms_of(client, options.ttl);
    terms.auto_refresh = options.auto_refresh;
    if (options.max_hold) terms.max_hold = options.max_hold->value();
    return terms;
}

}  // namespace kunci::driver
