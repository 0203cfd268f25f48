// The stories that people tell about distributed locks, told to the end. Time is a clock that the story moves,
// the server is the model that the conformance suite holds against a real one.
#include "support/catch.hpp"
#include "support/model_bench.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <system_error>

namespace {

using namespace std::chrono_literals;
using kunci::Errc;
using kunci::Event;
using kunci::test::ModelBench;
using kunci::test::StopAwaiter;

SCENARIO("the holder dies, and nobody is locked out for longer than one TTL") {
    GIVEN("a server in the middle of its daily job") {
        ModelBench world;
        auto job = std::make_optional(world.locks.acquire("daily-notif", {.ttl = 30s}));
        WHEN("it loses power") {
            job.reset();  // a token releases nothing when it goes
            THEN("the others skip as long as it might be alive") {
                world.clock.advance(29s);
                CHECK_FALSE(world.stranger.try_lock("daily-notif"));
            }
            THEN("the next one runs after the TTL") {
                world.clock.advance(30s + 1ms);
                CHECK(world.stranger.try_lock("daily-notif"));
            }
        }
    }
}

SCENARIO("the reply to the acquire is lost") {
    GIVEN("a server that executed the SET, and a network that ate the OK") {
        ModelBench world;
        world.faults.drop_reply({.command = "SET"});
        WHEN("the client has time to wait") {
            const auto token = world.locks.acquire("checkout:42", {.ttl = 10s, .wait_timeout = 5s});
            THEN("it is not locked out by itself") {
                CHECK(world.server.command({"GET", "lock:checkout:42"}).text() == token.token());
                CHECK(world.locks.release(token));
            }
        }
        WHEN("the client has no time") {
            std::error_code error;
            const auto token = world.locks.try_acquire("checkout:42", {.ttl = 10s}, error);
            THEN("it says that it does not know, which is neither yes nor no") {
                CHECK_FALSE(token);
                CHECK(error == Errc::maybe_executed);
            }
            THEN("nobody is locked out by the ghost") {
                CHECK(world.stranger.try_lock("checkout:42"));
            }
        }
    }
}

SCENARIO("the holder is paused for longer than its lease") {
    GIVEN("a job that holds the lock, and whose refresher stands still with it") {
        ModelBench world;
        auto guard = world.locks.lock("stock:7", {.ttl = 10s, .auto_refresh = false});
        StopAwaiter told{guard.stop_token()};
        WHEN("it wakes after its lease has ended, and somebody else has the lock") {
            world.clock.advance(11s);
            const auto next = world.stranger.acquire("stock:7", {.ttl = 10s});
            THEN("its first look says so") {
                CHECK_FALSE(guard.held());
                CHECK(told.await());
            }
            THEN("it leaves the next holder alone") {
                CHECK_FALSE(guard.release());
                CHECK(world.server.command({"GET", "lock:stock:7"}).text() == next.token());
            }
        }
    }
}

SCENARIO("an operator deletes the key of a lock that is held") {
    GIVEN("a guard that is refreshed in the background") {
        ModelBench world;
        auto guard = world.locks.lock("migration", {.ttl = 3s});
        StopAwaiter told{guard.stop_token()};
        WHEN("the key is deleted, and a rival takes the lock") {
            world.server.command({"DEL", "lock:migration"});
            const auto rival = world.stranger.acquire("migration", {.ttl = 30s});
            REQUIRE(world.clock.await_sleepers(2));  // the refresher and the timer of losses
            world.clock.advance(1s);
            THEN("the holder is told at its next refresh") {
                CHECK(told.await());
                CHECK_FALSE(guard.held());
            }
            THEN("the rival's lock is neither refreshed nor released") {
                CHECK(told.await());
                CHECK_FALSE(guard.release());
                CHECK(world.server.command({"GET", "lock:migration"}).text() == rival.token());
                CHECK(world.pttl("lock:migration") <= 29'000);
            }
        }
    }
}

SCENARIO("the server is restarted without its data") {
    GIVEN("a guard, and a server that forgets everything, its scripts too") {
        ModelBench world;
        auto guard = world.locks.lock("report", {.ttl = 3s});
        StopAwaiter told{guard.stop_token()};
        world.server.command({"FLUSHALL"});
        world.server.command({"SCRIPT", "FLUSH"});
        WHEN("the next refresh is due") {
            REQUIRE(world.clock.await_sleepers(2));
            world.clock.advance(1s);
            THEN("the loss is told, and the key is not quietly made again") {
                CHECK(told.await());
                CHECK_FALSE(world.exists("lock:report"));
            }
        }
    }
}

SCENARIO("the network is away for a while") {
    GIVEN("a guard with a TTL of three seconds") {
        ModelBench world;
        auto guard = world.locks.lock("import", {.ttl = 3s});
        StopAwaiter told{guard.stop_token()};
        world.faults.cut_link();
        WHEN("it comes back before the lease has ended") {
            REQUIRE(world.clock.await_sleepers(2));
            world.clock.advance(1s);
            REQUIRE(world.observer.await(Event::Kind::refresh_failed));
            world.faults.mend_link();
            while (world.observer.count(Event::Kind::refreshed) == 0) {
                REQUIRE(world.clock.await_sleepers(2));
                world.clock.advance(10ms);
            }
            THEN("nothing has happened") {
                CHECK(guard.held());
                CHECK_FALSE(guard.stop_token().stop_requested());
            }
        }
        WHEN("it does not come back") {
            const auto end = guard.valid_until();
            REQUIRE(world.clock.await_sleepers(2));
            world.clock.advance_to(end);
            THEN("the loss is told at the end of the lease, though nothing could be asked") {
                CHECK_FALSE(guard.held());
                CHECK(told.await());
            }
        }
    }
}

}  // namespace
