#pragma once

#include <kunci/connection/reply.hpp>
#include <kunci/testing/command_table.hpp>
#include <kunci/testing/keyspace.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

// The commands of the model server that work on keys, each as Redis 7.0 does it.

namespace kunci::testing::detail {

using std::chrono::milliseconds;

// ----- GET, SET ------------------------------------------------------------------------------------------

inline Reply get(const Invocation& call) {
    const Keyspace::Entry* entry = call.find(call[1]);
    if (entry == nullptr) return Reply::nil();
    const auto* bytes = std::get_if<std::string>(&entry->value);
    return bytes != nullptr ? Reply::string(*bytes) : errors::wrong_type();
}

/// An instant `count` units of time after now; empty if that is beyond what a server can count.
[[nodiscard]] inline std::optional<milliseconds> instant_after(milliseconds now, std::int64_t count,
                                                               std::int64_t ms_per_unit) {
    if (count > INT64_MAX / ms_per_unit || count < INT64_MIN / ms_per_unit) return std::nullopt;
    if (count * ms_per_unit > INT64_MAX - now.count()) return std::nullopt;
    return now + milliseconds{count * ms_per_unit};
}

struct SetOptions {
    bool only_if_absent = false;
    bool only_if_present = false;
    bool keep_ttl = false;
    std::int64_t ms_per_unit = 0;  // 0: no expiry given
    std::string_view ttl = {};

    [[nodiscard]] bool has_ttl() const { return ms_per_unit != 0; }
};

/// Takes the option at `index`, and moves on over its value if it has one. False is a syntax error.
[[nodiscard]] inline bool take_set_option(const Invocation& call, std::size_t& index, SetOptions& options) {
    const std::string_view word = call[index];
    if (is_word(word, "nx") && !options.only_if_present) return options.only_if_absent = true;
    if (is_word(word, "xx") && !options.only_if_absent) return options.only_if_present = true;
    if (is_word(word, "keepttl") && !options.has_ttl()) return options.keep_ttl = true;
    const std::int64_t unit = is_word(word, "ex") ? 1000 : is_word(word, "px") ? 1 : 0;
    const bool contradicts = options.keep_ttl || (options.has_ttl() && options.ms_per_unit != unit);
    if (unit == 0 || contradicts || index + 1 == call.size()) return false;
    options.ms_per_unit = unit;
    options.ttl = call[++index];
    return true;
}

inline Reply set(const Invocation& call) {
    SetOptions options;
    for (std::size_t i = 3; i < call.size(); ++i) {
        for (const std::string_view word : {"get", "exat", "pxat"}) {
            if (is_word(call[i], word)) return errors::beyond_the_model("SET " + std::string{word});
        }
        if (!take_set_option(call, i, options)) return errors::syntax();
    }
    std::optional<milliseconds> expires_at;
    if (options.has_ttl()) {
        const std::optional<std::int64_t> ttl = to_integer(options.ttl);
        if (!ttl) return errors::not_an_integer();
        if (*ttl > 0) expires_at = instant_after(call.now_ms(), *ttl, options.ms_per_unit);
        if (!expires_at) return errors::invalid_expire_time("set");
    }
    const Keyspace::Entry* present = call.find(call[1]);
    if (present != nullptr ? options.only_if_absent : options.only_if_present) return Reply::nil();
    if (options.keep_ttl && present != nullptr) expires_at = present->expires_at;
    call.server.keys.put(call[1], {std::string{call[2]}, expires_at});
    return Reply::status("OK");
}

// ----- Any key -------------------------------------------------------------------------------------------

inline Reply del(const Invocation& call) {
    std::int64_t count = 0;
    for (const std::string_view key : call.arguments.subspan(1)) {
        count += call.server.keys.erase(key, call.now_ms()) ? 1 : 0;
    }
    return Reply::integer(count);
}

inline Reply exists(const Invocation& call) {
    std::int64_t count = 0;
    for (const std::string_view key : call.arguments.subspan(1)) count += call.find(key) != nullptr ? 1 : 0;
    return Reply::integer(count);
}

inline Reply type(const Invocation& call) {
    static constexpr std::array names{"string", "list", "hash"};
    const Keyspace::Entry* entry = call.find(call[1]);
    return Reply::status(entry == nullptr ? "none" : names[entry->value.index()]);
}

inline Reply remaining(const Invocation& call, std::int64_t ms_per_unit) {
    const Keyspace::Entry* entry = call.find(call[1]);
    if (entry == nullptr) return Reply::integer(-2);
    if (!entry->expires_at) return Reply::integer(-1);
    const std::int64_t left = (*entry->expires_at - call.now_ms()).count();
    return Reply::integer(ms_per_unit == 1 ? left : (left + ms_per_unit / 2) / ms_per_unit);
}
inline Reply pttl(const Invocation& call) {
    return remaining(call, 1);
}
inline Reply ttl(const Invocation& call) {
    return remaining(call, 1000);
}

inline Reply expire_after(const Invocation& call, std::string_view command, std::int64_t ms_per_unit) {
    for (const std::string_view option : call.arguments.subspan(3)) {
        for (const std::string_view word : {"nx", "xx", "gt", "lt"}) {
            if (is_word(option, word)) {
                return errors::beyond_the_model(std::string{command} + ' ' + std::string{word});
            }
        }
        return Reply::error("ERR Unsupported option " + errors::printable(option, option.size()));
    }
    const std::optional<std::int64_t> ttl = to_integer(call[2]);
    if (!ttl) return errors::not_an_integer();
    const std::optional<milliseconds> at = instant_after(call.now_ms(), *ttl, ms_per_unit);
    if (!at) return errors::invalid_expire_time(command);
    Keyspace::Entry* entry = call.find(call[1]);
    if (entry == nullptr) return Reply::integer(0);
    if (*at <= call.now_ms()) {
        call.server.keys.erase(call[1], call.now_ms());
    } else {
        entry->expires_at = at;
    }
    return Reply::integer(1);
}
inline Reply pexpire(const Invocation& call) {
    return expire_after(call, "pexpire", 1);
}
inline Reply expire(const Invocation& call) {
    return expire_after(call, "expire", 1000);
}

inline Reply persist(const Invocation& call) {
    Keyspace::Entry* entry = call.find(call[1]);
    if (entry == nullptr || !entry->expires_at) return Reply::integer(0);
    entry->expires_at.reset();
    return Reply::integer(1);
}

// ----- Values of other types, so that a lock can meet one ---------------------------------------------------

/// The value of `key` as a `T`, created where there is none; null if it is of another type.
template <typename T>
[[nodiscard]] T* find_or_create(const Invocation& call, std::string_view key) {
    if (call.find(key) == nullptr) call.server.keys.put(key, {T{}});
    return std::get_if<T>(&call.find(key)->value);
}

inline Reply rpush(const Invocation& call) {
    auto* list = find_or_create<Keyspace::List>(call, call[1]);
    if (list == nullptr) return errors::wrong_type();
    list->insert(list->end(), call.arguments.begin() + 2, call.arguments.end());
    return Reply::integer(static_cast<std::int64_t>(list->size()));
}

inline Reply hset(const Invocation& call) {
    if (call.size() % 2 == 1) return errors::wrong_number_of_arguments("hset");
    auto* hash = find_or_create<Keyspace::Hash>(call, call[1]);
    if (hash == nullptr) return errors::wrong_type();
    std::int64_t created = 0;
    for (std::size_t i = 2; i < call.size(); i += 2) {
        created += hash->insert_or_assign(std::string{call[i]}, std::string{call[i + 1]}).second ? 1 : 0;
    }
    return Reply::integer(created);
}

// ----- The server ----------------------------------------------------------------------------------------

inline Reply ping(const Invocation& call) {
    if (call.size() > 2) return errors::wrong_number_of_arguments("ping");
    return call.size() == 2 ? Reply::string(std::string{call[1]}) : Reply::status("PONG");
}

inline Reply echo(const Invocation& call) {
    return Reply::string(std::string{call[1]});
}

inline Reply time(const Invocation& call) {
    const std::int64_t us = call.now.count();
    return Reply::array({Reply::string(std::to_string(us / 1'000'000)),  //
                         Reply::string(std::to_string(us % 1'000'000))});
}

inline Reply flush(const Invocation& call) {
    const bool known =
        call.size() == 1 || (call.size() == 2 && (is_word(call[1], "sync") || is_word(call[1], "async")));
    if (!known) return errors::syntax();
    call.server.keys.clear();
    return Reply::status("OK");
}

inline Reply dbsize(const Invocation& call) {
    return Reply::integer(static_cast<std::int64_t>(call.server.keys.size(call.now_ms())));
}

inline constexpr std::array<CommandRow, 18> data_commands{{
    {"get", 2, get},           //
    {"set", -3, set},          //
    {"del", -2, del},          //
    {"exists", -2, exists},    //
    {"type", 2, type},         //
    {"pttl", 2, pttl},         //
    {"ttl", 2, ttl},           //
    {"pexpire", -3, pexpire},  //
    {"expire", -3, expire},    //
    {"persist", 2, persist},   //
    {"rpush", -3, rpush},      //
    {"hset", -4, hset},        //
    {"ping", -1, ping},        //
    {"echo", 2, echo},         //
    {"time", 1, time},         //
    {"flushall", -1, flush},   //
    {"flushdb", -1, flush},    //
    {"dbsize", 1, dbsize},     //
}};

}  // namespace kunci::testing::detail
