#include "conformance/lock_conformance.hpp"

#include <kunci/hiredis.hpp>
#include <kunci/testing.hpp>

#include "support/child_process.hpp"
#include "support/redis_server.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace kunci::test {
namespace {

/// The model server, on a clock that only the test moves.
class ModelWorld {
  public:
    [[nodiscard]] auto locks() { return DistributedLock{server_.connect(), clock_}; }
    Reply command(std::initializer_list<std::string_view> arguments) { return server_.command(arguments); }
    void outlive(std::string_view) { clock_.advance(std::chrono::hours{1}); }
    void forget_scripts() { server_.command({"SCRIPT", "FLUSH"}); }

  private:
    kunci::testing::ManualClock clock_;
    kunci::testing::InMemoryServer server_{clock_};
};

/// A real redis-server through hiredis.
class RedisWorld {
  public:
    [[nodiscard]] auto locks() { return DistributedLock{HiredisConnection{server_.url()}}; }
    Reply command(std::initializer_list<std::string_view> arguments) { return server_.command(arguments); }
    void outlive(std::string_view key) {
        if (!poll_until(
                [&] {
                    return server_.command({"EXISTS", key}).integer() == 0;
                },
                std::chrono::seconds{10})) {
            throw std::runtime_error("the key does not go away");
        }
    }
    void forget_scripts() { server_.command({"SCRIPT", "FLUSH"}); }

  private:
    RedisServer server_;
};

class WorldName {
  public:
    template <typename World>
    static std::string GetName(int) {
        return std::is_same_v<World, ModelWorld> ? "Model" : "Redis";
    }
};

using Worlds = ::testing::Types<ModelWorld, RedisWorld>;
INSTANTIATE_TYPED_TEST_SUITE_P(On, LockConformance, Worlds, WorldName);

}  // namespace
}  // namespace kunci::test
