#include "conformance/connection_conformance.hpp"

#include <kunci/hiredis.hpp>
#include <kunci/testing/faulty_connection.hpp>
#include <kunci/testing/in_memory_server.hpp>
#include <kunci/testing/manual_clock.hpp>

#include "support/redis_server.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

namespace kunci::test {
namespace {

/// The model server on a clock that stands still.
class ModelBackend {
  public:
    [[nodiscard]] auto connect() { return server_.connect(); }
    [[nodiscard]] TimePoint now() const { return clock_.now(); }
    Reply command(std::initializer_list<std::string_view> arguments) { return server_.command(arguments); }

  private:
    kunci::testing::ManualClock clock_;
    kunci::testing::InMemoryServer server_{clock_};
};

/// The same, wrapped, on a day without faults.
class FaultlessBackend : public ModelBackend {
  public:
    [[nodiscard]] auto connect() {
        return kunci::testing::FaultyConnection{ModelBackend::connect(), kunci::testing::FaultPlan{}};
    }
};

/// A real redis-server through hiredis.
class HiredisBackend {
  public:
    [[nodiscard]] HiredisConnection connect() { return HiredisConnection{server_.url()}; }
    [[nodiscard]] static TimePoint now() { return SteadyClock::now(); }
    Reply command(std::initializer_list<std::string_view> arguments) { return server_.command(arguments); }

  private:
    RedisServer server_;
};

class BackendName {
  public:
    template <typename Backend>
    static std::string GetName(int) {
        if constexpr (std::is_same_v<Backend, ModelBackend>) return "InMemoryConnection";
        if constexpr (std::is_same_v<Backend, FaultlessBackend>) return "FaultyConnection";
        if constexpr (std::is_same_v<Backend, HiredisBackend>) return "HiredisConnection";
    }
};

using Backends = ::testing::Types<ModelBackend, FaultlessBackend, HiredisBackend>;
INSTANTIATE_TYPED_TEST_SUITE_P(Every, ConnectionConformance, Backends, BackendName);

}  // namespace
}  // namespace kunci::test
