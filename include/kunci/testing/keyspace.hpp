#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace kunci::testing {

/// The time of day at a server: since the Unix epoch.
using WallTime = std::chrono::microseconds;

/// The keys of a model server, with their values and expiry. A value; not thread-safe.
class Keyspace {
  public:
    using List = std::vector<std::string>;
    using Hash = std::map<std::string, std::string, std::less<>>;
    using Value = std::variant<std::string, List, Hash>;

    struct Entry {
        Value value;
        std::optional<std::chrono::milliseconds> expires_at = {};  ///< Since the Unix epoch.
    };

    /// The entry of `key`, or null. Removes it first if it has expired: as in Redis only when its millisecond
    /// is over, not when it begins.
    [[nodiscard]] Entry* find(std::string_view key, std::chrono::milliseconds now) {
        const auto found = entries_.find(key);
        if (found == entries_.end()) return nullptr;
        if (!expired(found->second, now)) return &found->second;
        entries_.erase(found);
        return nullptr;
    }

    /// Creates or replaces.
    void put(std::string_view key, Entry entry) {
        entries_.insert_or_assign(std::string{key}, std::move(entry));
    }

    /// Whether there was one.
    bool erase(std::string_view key, std::chrono::milliseconds now) {
        if (find(key, now) == nullptr) return false;
        entries_.erase(entries_.find(key));
        return true;
    }

    void clear() { entries_.clear(); }

    /// Without the expired ones, as if the server's own sweep were instantaneous.
    [[nodiscard]] std::size_t size(std::chrono::milliseconds now) {
        std::erase_if(entries_, [&](const auto& item) { return expired(item.second, now); });
        return entries_.size();
    }

  private:
    [[nodiscard]] static bool expired(const Entry& entry, std::chrono::milliseconds now) {
        return entry.expires_at && now > *entry.expires_at;
    }

    std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace kunci::testing
