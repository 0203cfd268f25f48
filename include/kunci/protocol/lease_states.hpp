#pragma once

namespace kunci::protocol {

/// Where a tenure stands.
enum class LeasePhase {
    idle,       ///< Nothing has been asked.
    acquiring,  ///< Being acquired, or a try has ended without success; another may follow.
    resuming,   ///< A known token is being refreshed, to learn whether it still holds the lock.
    held,       ///< Ours until `Lease::valid_until()`.
    lost,       ///< Was held, and no longer is. It never comes back.
    releasing,  ///< Being given back; the token is burnt.
    over,       ///< Given back as far as that was possible.
};

/// How a try to acquire or to resume stands.
enum class LeaseTry { pending, granted, refused, failed };

/// How a release stands; `not_ours` means that the lease had ended before.
enum class LeaseRelease { pending, released, not_ours, unknown };

}  // namespace kunci::protocol
