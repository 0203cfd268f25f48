#pragma once

#include <kunci/connection/connection.hpp>
#include <kunci/protocol/lease.hpp>
#include <kunci/protocol/requests.hpp>

#include <exception>
#include <string>
#include <utility>

namespace kunci::driver {

/// The nodes of a lock, whatever their type: what the state machines' requests go through. Thread-safe.
class Transport {
  public:
    Transport() = default;
    Transport(const Transport&) = delete;
    Transport& operator=(const Transport&) = delete;
    virtual ~Transport() = default;

    /// As `Connection::execute`, at one node; `recall` as in RecallingConnection, or null.
    virtual Outcome execute(protocol::NodeIndex node, const Command& command, Deadline deadline,
                            const Command* recall) = 0;

    /// Where the node is, for messages; empty if its connection does not tell.
    [[nodiscard]] virtual std::string address(protocol::NodeIndex node) = 0;
};

/// One server behind one connection.
template <Connection C>
class SingleNode final : public Transport {
  public:
    explicit SingleNode(C connection) : connection_{std::move(connection)} {}

    Outcome execute(protocol::NodeIndex, const Command& command, Deadline deadline,
                    const Command* recall) override {
        if constexpr (RecallingConnection<C>) {
            if (recall != nullptr) return connection_.execute(command, deadline, *recall);
        }
        return connection_.execute(command, deadline);
    }

    std::string address(protocol::NodeIndex) override {
        if constexpr (AddressedConnection<C>) return connection_.address();
        return {};
    }

  private:
    C connection_;
};

/// What a connection threw, as far as there is memory to tell it.
[[nodiscard]] inline Fault fault_of_exception(const std::exception& thrown) noexcept {
    try {
        return Fault::maybe_executed(std::string{"the connection threw: "} + thrown.what());
    } catch (...) {
        return {};
    }
}

/// Performs a request of `lease`. What a connection throws proves nothing about the command, so it becomes an
/// unknown outcome.
[[nodiscard]] inline Outcome perform(Transport& transport, const protocol::Request& request,
                                     const protocol::Lease& lease) {
    try {
        if (!request.recall) {
            return transport.execute(request.node, request.command, request.deadline, nullptr);
        }
        const Command recall = lease.recall_command();
        return transport.execute(request.node, request.command, request.deadline, &recall);
    } catch (const std::exception& thrown) {
        return fault_of_exception(thrown);
    } catch (...) {
        return Fault{};
    }
}

}  // namespace kunci::driver
