#include <kunci/connection/command.hpp>
#include <kunci/connection/connection.hpp>
#include <kunci/connection/outcome.hpp>
#include <kunci/hiredis.hpp>
#include <kunci/testing.hpp>
#include <kunci/time.hpp>

#include <gtest/gtest.h>

#include <optional>
#include <utility>

namespace {

using kunci::Command;
using kunci::Connection;
using kunci::Deadline;
using kunci::Outcome;
using kunci::RecallingConnection;
using kunci::Reply;

// ----- Connection ----------------------------------------------------------------------------------------

/// Meets the requirements and offers nothing else: it can be moved, and executes.
struct Archetype {
    explicit Archetype(int) {}
    Archetype(Archetype&&) = default;
    Archetype& operator=(Archetype&&) = default;
    Archetype(const Archetype&) = delete;
    Archetype& operator=(const Archetype&) = delete;
    ~Archetype() = default;

    Outcome execute(const Command&, Deadline) { return Reply::nil(); }
};
static_assert(Connection<Archetype>);

struct WithoutExecute {};
static_assert(!Connection<WithoutExecute>);

struct WithoutMove {
    WithoutMove() = default;
    WithoutMove(WithoutMove&&) = delete;
    WithoutMove& operator=(WithoutMove&&) = delete;
    Outcome execute(const Command&, Deadline);
};
static_assert(!Connection<WithoutMove>);

struct WithoutMoveAssignment {
    WithoutMoveAssignment(WithoutMoveAssignment&&) = default;
    WithoutMoveAssignment& operator=(WithoutMoveAssignment&&) = delete;
    Outcome execute(const Command&, Deadline);
};
static_assert(!Connection<WithoutMoveAssignment>);

struct ReturningReply {
    Reply execute(const Command&, Deadline);
};
static_assert(!Connection<ReturningReply>, "a reply alone has no room for a fault");

struct ReturningOptionalOutcome {
    std::optional<Outcome> execute(const Command&, Deadline);
};
static_assert(!Connection<ReturningOptionalOutcome>);

struct ReturningNothing {
    void execute(const Command&, Deadline);
};
static_assert(!Connection<ReturningNothing>);

struct TakingMutableCommand {
    Outcome execute(Command&, Deadline);
};
static_assert(!Connection<TakingMutableCommand>, "the caller's command is not to be changed");

struct TakingTemporaryCommand {
    Outcome execute(Command&&, Deadline);
};
static_assert(!Connection<TakingTemporaryCommand>);

struct WithoutDeadline {
    Outcome execute(const Command&);
};
static_assert(!Connection<WithoutDeadline>);

struct TakingTimeout {
    Outcome execute(const Command&, kunci::Duration);
};
static_assert(!Connection<TakingTimeout>, "a deadline is an instant, not a length of time");

struct HidingExecute {
  private:
    Outcome execute(const Command&, Deadline);
};
static_assert(!Connection<HidingExecute>);

struct OnlyForTemporaries {
    Outcome execute(const Command&, Deadline) &&;
};
static_assert(!Connection<OnlyForTemporaries>, "a connection is used more than once");

static_assert(!Connection<Archetype&>, "a reference cannot be owned");
static_assert(!Connection<const Archetype>);

// ----- RecallingConnection ---------------------------------------------------------------------------------

struct RecallingArchetype : Archetype {
    using Archetype::execute;
    Outcome execute(const Command&, Deadline, const Command&);
};
static_assert(RecallingConnection<RecallingArchetype>);

static_assert(!RecallingConnection<Archetype>, "without the recall");

struct RecallingOnly {
    Outcome execute(const Command&, Deadline, const Command&);
};
static_assert(!RecallingConnection<RecallingOnly>, "without the plain form");

struct RecallReturningNothing : Archetype {
    using Archetype::execute;
    void execute(const Command&, Deadline, const Command&);
};
static_assert(!RecallingConnection<RecallReturningNothing>);

struct TakingMutableRecall : Archetype {
    using Archetype::execute;
    Outcome execute(const Command&, Deadline, Command&);
};
static_assert(!RecallingConnection<TakingMutableRecall>);

// ----- What kunci offers -----------------------------------------------------------------------------------

template <typename C>
using Faulty = kunci::testing::FaultyConnection<C>;

static_assert(RecallingConnection<kunci::HiredisConnection>);
static_assert(RecallingConnection<kunci::testing::InMemoryConnection>);
static_assert(RecallingConnection<Faulty<kunci::HiredisConnection>>);
static_assert(RecallingConnection<Faulty<kunci::testing::InMemoryConnection>>);
static_assert(RecallingConnection<Faulty<RecallingArchetype>>);
static_assert(Connection<Faulty<Archetype>> && !RecallingConnection<Faulty<Archetype>>);

/// Whatever a wrapper does with a connection, it may do no more than this.
template <Connection C>
Outcome use(C connection) {
    C moved{std::move(connection)};
    connection = std::move(moved);
    const Command command{"PING"};
    return connection.execute(command, Deadline{});
}

TEST(ArchetypeTest, is_usable_through_the_concept_alone) {
    EXPECT_TRUE(use(Archetype{0}).has_reply());
    EXPECT_TRUE(Faulty<Archetype>(Archetype{0}, kunci::testing::FaultPlan{})
                    .execute(Command{"PING"}, Deadline{})
                    .has_reply());
}

}  // namespace
