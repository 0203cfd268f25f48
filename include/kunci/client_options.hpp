#pragma once

#include <kunci/observer.hpp>
#include <kunci/time.hpp>

#include <chrono>
#include <cmath>
#include <stdexcept>
#include <string>

namespace kunci {

/// What holds for all locks of one client; an aggregate for designated initialisers.
struct ClientOptions {
    /// Stands before the user's key in Redis. Everybody who locks the same thing must use the same one.
    std::string key_prefix = "lock:";

    /// How far the clocks of client and server may drift apart, as a part of the elapsed time; the lease is
    /// shortened by it. 0.01 covers clocks that run up to 0.5 % wrong on either side. A machine whose clock
    /// is being slewed by chrony's defaults runs up to 8 % off: use 0.1 there, or set `maxslewrate 1000`.
    double drift_factor = 0.01;

    /// The longest that one command may take, connecting included: a refresh is given a sixth of the TTL if
    /// that is less, an acquire what is left of its wait.
    TimeSpan operation_timeout = std::chrono::seconds{1};

    /// Sees what happens to the locks; none by default. It must outlive the client and its guards.
    Observer* observer = nullptr;
};

/// Throws `std::invalid_argument`, naming the option, if a value makes no sense.
inline void validate(const ClientOptions& options) {
    if (!std::isfinite(options.drift_factor) || options.drift_factor < 0 || options.drift_factor >= 1) {
        throw std::invalid_argument("kunci: drift_factor must be at least 0 and less than 1, not " +
                                    std::to_string(options.drift_factor));
    }
    if (options.operation_timeout <= TimeSpan{}) {
        throw std::invalid_argument("kunci: operation_timeout must be positive");
    }
}

}  // namespace kunci
