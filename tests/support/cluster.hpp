#pragma once

#include "child_process.hpp"
#include "redis_server.hpp"

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace kunci::test {

/// Two servers that share the slots of a cluster: the first has the lower half.
class Cluster {
  public:
    Cluster() {
        first_.command({"CLUSTER", "ADDSLOTSRANGE", "0", "8191"});
        second_.command({"CLUSTER", "ADDSLOTSRANGE", "8192", "16383"});
        first_.command({"CLUSTER", "MEET", "127.0.0.1", std::to_string(second_.port()), second_bus_});
        const auto knows_all = [](const RedisServer& server) {
            const std::string info = server.cli({"CLUSTER", "INFO"});
            return info.find("cluster_state:ok") != std::string::npos &&
                   info.find("cluster_slots_assigned:16384") != std::string::npos;
        };
        if (!poll_until([&] { return knows_all(first_) && knows_all(second_); }, std::chrono::seconds{20})) {
            throw std::runtime_error("the cluster does not come up");
        }
    }

    [[nodiscard]] const RedisServer& first() const { return first_; }
    [[nodiscard]] const RedisServer& second() const { return second_; }

    /// The key of a lock that belongs to the one or the other.
    [[nodiscard]] std::string key_of_first() const { return key_in(0, 8191); }
    [[nodiscard]] std::string key_of_second() const { return key_in(8192, 16383); }

  private:
    static std::vector<std::string> arguments(const std::string& bus_port) {
        return {"--cluster-enabled", "yes", "--cluster-port", bus_port};
    }

    [[nodiscard]] std::string key_in(std::int64_t least, std::int64_t most) const {
        for (int i = 0;; ++i) {
            const std::string key = "k" + std::to_string(i);
            const auto slot = first_.command({"CLUSTER", "KEYSLOT", "lock:" + key}).integer();
            if (slot >= least && slot <= most) return key;
        }
    }

    const std::string first_bus_ = std::to_string(detail::probably_free_port());
    const std::string second_bus_ = std::to_string(detail::probably_free_port());
    RedisServer first_{arguments(first_bus_)};
    RedisServer second_{arguments(second_bus_)};
};

}  // namespace kunci::test
