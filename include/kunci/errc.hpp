#pragma once

#include <kunci/detail/immortal.hpp>

#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace kunci {

/// Why an operation did not end as asked. Each value is one thing that a caller may want to act on.
///
/// Some values stand for a group, and the ones below them for its members. Comparing an error code with a group
/// asks for any of its members, as comparing with `std::errc` does: `error == Errc::unreachable` holds for a
/// refused connection, too. In a code itself always stands the most special one that is known.
enum class Errc {
    /// Somebody else holds the lock, and `wait_timeout` has passed.
    lock_held = 1,
    /// The wait was ended through `LockOptions::cancel`.
    cancelled,
    /// The lease ran out before the operation ended, or the server said that the lock is not ours any more.
    lease_lost,

    /// Group: no connection to the server could be made, or it was not used. Nothing has been executed.
    unreachable = 10,
    connection_refused,  ///< Nobody listens at the address.
    connect_timeout,     ///< The server did not answer the attempt to connect, or the greeting, in time.
    name_not_found,      ///< The name of the host could not be resolved.
    no_descriptors,      ///< The process or the system can open no further descriptor.
    tls_failed,  ///< No TLS with the server: the other side is not TLS, or a certificate was not accepted.
    not_sent_in_time,  ///< The deadline came before the command could be sent.

    /// Group: the command went out and no answer came. It may or may not have been executed.
    maybe_executed = 20,
    connection_lost,  ///< The connection broke or was closed before the answer.
    no_answer,        ///< The deadline came before the answer.
    bad_reply,        ///< What came back is not Redis's protocol.

    /// Group: the server answered with an error (its code word and text are in the exception). The members are
    /// temporary: they are waited out within `wait_timeout`, and within the lease by a refresher.
    server_refused = 30,
    loading,           ///< LOADING: it reads its data set from disk.
    script_running,    ///< BUSY: a script runs for too long.
    read_only,         ///< READONLY: it is a replica, most often after a failover.
    master_down,       ///< MASTERDOWN: it is a replica that has lost its master.
    too_few_replicas,  ///< NOREPLICAS: `min-replicas-to-write` is not met.
    disk_failing,      ///< MISCONF: it cannot write its snapshots.
    out_of_memory,     ///< OOM: `maxmemory` is reached.
    cluster_down,      ///< CLUSTERDOWN, TRYAGAIN: the cluster does not serve this slot now.
    too_many_clients,  ///< `maxclients` is reached.

    /// Group: the server does not let this user do it. Permanent: told at once.
    not_permitted = 40,
    password_required,  ///< NOAUTH.
    wrong_password,     ///< WRONGPASS.
    acl_denied,         ///< NOPERM: an ACL rule forbids the command or the key.

    /// Group: client and server do not fit together, a setting must be changed. Permanent: told at once.
    misconfigured = 50,
    wrong_node,        ///< MOVED, ASK: another node of the cluster has this slot.
    cross_slot,        ///< CROSSSLOT: the keys of one command are on several nodes.
    no_such_database,  ///< The database in the URL does not exist.
};

/// The group that `code` belongs to; what is in no group stands for itself.
[[nodiscard]] constexpr Errc group_of(Errc code) noexcept {
    constexpr int group_size = 10;
    const int value = static_cast<int>(code);
    return value < group_size ? code : static_cast<Errc>(value - value % group_size);
}

namespace detail {

[[nodiscard]] constexpr std::string_view message_of(Errc code) noexcept {
    switch (code) {
        case Errc::lock_held:
            return "the lock is held by somebody else";
        case Errc::cancelled:
            return "the wait for the lock was cancelled";
        case Errc::lease_lost:
            return "the lease has run out";
        case Errc::unreachable:
            return "the server cannot be reached; nothing was executed";
        case Errc::connection_refused:
            return "nobody listens at the server's address; nothing was executed";
        case Errc::connect_timeout:
            return "the server did not answer the attempt to connect in time; nothing was executed";
        case Errc::name_not_found:
            return "the name of the server's host could not be resolved; nothing was executed";
        case Errc::no_descriptors:
            return "no further descriptor can be opened; nothing was executed";
        case Errc::tls_failed:
            return "no TLS connection with the server; nothing was executed";
        case Errc::not_sent_in_time:
            return "the deadline came before the command could be sent; nothing was executed";
        case Errc::maybe_executed:
            return "no answer came; the command may have been executed";
        case Errc::connection_lost:
            return "the connection broke before the answer; the command may have been executed";
        case Errc::no_answer:
            return "no answer came in time; the command may have been executed";
        case Errc::bad_reply:
            return "the answer is not Redis's protocol; the command may have been executed";
        case Errc::server_refused:
            return "the server answered with an error";
        case Errc::loading:
            return "the server is loading its data set";
        case Errc::script_running:
            return "the server is busy with a script";
        case Errc::read_only:
            return "the server is a replica and takes no writes";
        case Errc::master_down:
            return "the server is a replica that has lost its master";
        case Errc::too_few_replicas:
            return "the server has too few replicas to take writes";
        case Errc::disk_failing:
            return "the server takes no writes since it cannot save its data set";
        case Errc::out_of_memory:
            return "the server has reached its memory limit";
        case Errc::cluster_down:
            return "the cluster does not serve this key now";
        case Errc::too_many_clients:
            return "the server has as many clients as it allows";
        case Errc::not_permitted:
            return "the server does not permit it to this user";
        case Errc::password_required:
            return "the server wants a password";
        case Errc::wrong_password:
            return "the server does not accept the user or the password";
        case Errc::acl_denied:
            return "an ACL rule of the server forbids it to this user";
        case Errc::misconfigured:
            return "client and server are not configured to fit together";
        case Errc::wrong_node:
            return "another node of the cluster has this key";
        case Errc::cross_slot:
            return "the keys of one command are on several nodes of the cluster";
        case Errc::no_such_database:
            return "the server does not have this database";
    }
    return "unknown kunci error";
}

}  // namespace detail

/// The category of `Errc`; its name is "kunci".
[[nodiscard]] inline const std::error_category& error_category() noexcept {
    class Category final : public std::error_category {
        [[nodiscard]] const char* name() const noexcept override { return "kunci"; }
        [[nodiscard]] std::string message(int value) const override {
            return std::string{detail::message_of(static_cast<Errc>(value))};
        }
        [[nodiscard]] bool equivalent(int value, const std::error_condition& asked) const noexcept override {
            if (asked.category() != *this) return false;
            return value == asked.value() ||
                   static_cast<int>(group_of(static_cast<Errc>(value))) == asked.value();
        }
    };
    static detail::Immortal<Category> category;
    return category.value;
}

[[nodiscard]] inline std::error_code make_error_code(Errc e) noexcept {
    return {static_cast<int>(e), error_category()};
}

/// What an error code is compared with.
[[nodiscard]] inline std::error_condition make_error_condition(Errc e) noexcept {
    return {static_cast<int>(e), error_category()};
}

}  // namespace kunci

template <>
struct std::is_error_condition_enum<kunci::Errc> : std::true_type {};
