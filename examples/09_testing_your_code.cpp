// Testing code that locks: no Redis, no waiting, and every fault on demand.
#include <kunci/kunci.hpp>
#include <kunci/testing.hpp>

#include <chrono>
#include <cstdio>
#include <string>

using namespace std::chrono_literals;

namespace {

/// The code under test. It takes any locks, so it cannot tell that these ones are not real.
std::string nightly_report(kunci::LockOperations& locks) {
    std::error_code error;
    const auto guard = locks.try_lock("nightly-report", {.ttl = 30s}, error);
    if (error) return "no lock service: " + error.message();
    return guard ? "reported" : "skipped";
}

int failures = 0;

void expect(const std::string& what, const std::string& actual, const std::string& expected) {
    std::printf("%s: %s\n", what.c_str(), actual.c_str());
    if (actual != expected) ++failures;
}

}  // namespace

int main() {
    // [testing]
    kunci::testing::ManualClock clock;
    kunci::testing::InMemoryServer server{clock};
    kunci::testing::FaultPlan faults{clock};
    kunci::DistributedLock ours{kunci::testing::FaultyConnection{server.connect(), faults}, clock};
    kunci::DistributedLock theirs{server.connect(), clock};

    expect("alone", nightly_report(ours), "reported");

    const auto holder = theirs.try_acquire("nightly-report", {.ttl = 30s});
    expect("while another runs it", nightly_report(ours), "skipped");
    clock.advance(31s);  // the other one has died; no test sleeps
    expect("after the other's lock has expired", nightly_report(ours), "reported");

    faults.drop_reply({.command = "SET"});  // executed, and the answer is lost on the way
    expect("in doubt", nightly_report(ours),
           "no lock service: no answer came; the command may have been executed");
    // [/testing]
    return holder && failures == 0 ? 0 : 1;
}
