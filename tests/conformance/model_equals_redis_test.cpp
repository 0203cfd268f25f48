#include <kunci/connection/reply.hpp>
#include <kunci/scripts/lock_scripts.hpp>
#include <kunci/testing/model_redis.hpp>

#include "support/raw_client.hpp"
#include "support/redis_server.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

// The model server is only worth something if it answers as Redis does. Random sequences of commands go to
// both, and every reply is compared.

namespace {

using kunci::Reply;
using kunci::testing::ModelRedis;
using kunci::testing::WallTime;
namespace scripts = kunci::scripts;

using Arguments = std::vector<std::string>;

constexpr std::uint64_t sequences = 300;
constexpr int commands_per_sequence = 60;

// Both servers read the time of this machine, but not in the same instant: what remains of a key's life may
// differ by so much. Lives are at least 100 s long and differ from each other by more than this, and
// everything else that is counted is below 90, so no error can hide in it.
constexpr std::int64_t tolerance_ms = 10'000;
constexpr std::int64_t tolerance_s = 10;
constexpr std::int64_t least_seconds = 90;
constexpr std::int64_t least_milliseconds = 90'000;

const std::vector<std::string> keys{"a", "b", "c"};

/// Draws one command after the other; the same ones for the same seed.
class Generator {
  public:
    explicit Generator(std::uint64_t seed) : random_{seed} {}

    Arguments next() {
        Arguments command = draw();
        if (one_in(12) && command.size() > 1) {
            command.pop_back();
        } else if (one_in(20)) {
            command.push_back(pick({"foo", "", "px", "xx-large"}));
        }
        if (one_in(4)) change_case(command.front());
        return command;
    }

  private:
    // std::uniform_int_distribution is not the same everywhere; a little bias does no harm here.
    std::size_t below(std::size_t bound) { return static_cast<std::size_t>(random_() % bound); }
    bool one_in(std::size_t n) { return below(n) == 0; }
    std::string pick(const std::vector<std::string>& choices) { return choices[below(choices.size())]; }

    std::string key() { return pick(keys); }
    std::string token() { return pick({"t1", "t1", "t2", "t2", ""}); }
    std::string milliseconds() {
        if (one_in(4)) return odd_number();
        return pick({"100000", "150000", "200000", "400000", "86400000", "1000000000000000"});
    }
    std::string seconds() {
        if (one_in(4)) return odd_number();
        return pick({"100", "150", "4000", "86400"});
    }
    // None that a script compares with a life of the same length: it would depend on the elapsed time.
    std::string odd_number() {
        return pick({"0",
                     "-1",
                     "-100000",
                     "-0",
                     "+100",
                     "007",
                     "abc",
                     "",
                     " 120000",
                     "1.5",
                     "0.5",
                     "1.2e5",
                     "0x10",
                     "0x",
                     "inf",
                     "nan",
                     "120000 ",
                     "9223372036854775807",
                     "-9223372036854775808",
                     "9223372036854775808",
                     "9000000000000000000",
                     "9223372036854775"});
    }

    void change_case(std::string& word) {
        std::ranges::transform(word, word.begin(), [&](char c) {
            return c >= 'A' && c <= 'Z' && one_in(2) ? static_cast<char>(c - 'A' + 'a') : c;
        });
    }

    Arguments draw() {
        switch (below(24)) {
            case 0:
            case 1:
            case 2:
                return set();
            case 3:
                return {"GET", key()};
            case 4:
                return {pick({"DEL", "EXISTS"}), key(), key()};
            case 5:
                return {pick({"TYPE", "PTTL", "TTL", "PERSIST"}), key()};
            case 6:
                return {"PEXPIRE", key(), milliseconds()};
            case 7:
                return {"EXPIRE", key(), seconds()};
            case 8:
                return {"RPUSH", key(), token(), token()};
            case 9:
                return {"HSET", key(), token(), "1", token(), "2"};
            case 10:
                return {pick({"DBSIZE", "PING", "ECHO", "NOPE", ""}), token()};
            case 11:
                return one_in(4) ? Arguments{pick({"FLUSHALL", "FLUSHDB"}), pick({"sync", "ASYNC", "x"})}
                                 : Arguments{"DBSIZE"};
            case 12:
                return script_command();
            default:
                return script_call();
        }
    }

    Arguments set() {
        Arguments command{"SET", key(), token()};
        if (one_in(2)) command.push_back(pick({"NX", "nx", "XX"}));
        if (one_in(2)) {
            const bool in_seconds = one_in(2);
            command.push_back(in_seconds ? pick({"EX", "ex"}) : pick({"PX", "pX"}));
            command.push_back(in_seconds ? seconds() : milliseconds());
        }
        if (one_in(6)) command.push_back(pick({"KEEPTTL", "NX", "XX", "foo", ""}));
        if (one_in(12)) command.push_back(pick({"PX", "EX"}));
        return command;
    }

    const scripts::Script& script() {
        switch (below(3)) {
            case 0:
                return scripts::claim;
            case 1:
                return scripts::refresh;
            default:
                return scripts::release;
        }
    }

    Arguments script_command() {
        const std::string sha1{script().sha1};
        switch (below(5)) {
            case 0:
                return {"SCRIPT", "LOAD", std::string{script().text}};
            case 1:
                return {"SCRIPT", "FLUSH"};
            case 2:
                return {"SCRIPT", pick({"FLUSH", "nope"}), pick({"SYNC", "async", "x"})};
            default:
                return {"script", "exists", sha1, std::string{script().sha1}, "no digest"};
        }
    }

    Arguments script_call() {
        const scripts::Script& called = script();
        Arguments command;
        if (one_in(2)) {
            command = {"EVAL", std::string{called.text}};
        } else {
            command = {"EVALSHA", std::string{called.sha1}};
            if (one_in(8)) std::ranges::transform(command[1], command[1].begin(), upper);
            if (one_in(30)) command[1] = pick({"", "abc", std::string(40, 'f')});
        }
        command.push_back(one_in(12) ? pick({"0", "2", "9", "-1", "x", "1.0"}) : "1");
        command.push_back(key());
        command.push_back(token());
        if (called.sha1 != scripts::release.sha1 || one_in(4)) command.push_back(milliseconds());
        return command;
    }

    static char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

    std::mt19937_64 random_;
};

[[nodiscard]] Reply ask_model(ModelRedis& model, const Arguments& command, WallTime now) {
    const std::vector<std::string_view> views{command.begin(), command.end()};
    return model.execute(views, now);
}

[[nodiscard]] WallTime time_of_day() {
    return std::chrono::floor<WallTime>(std::chrono::system_clock::now().time_since_epoch());
}

[[nodiscard]] bool equal_but_for_elapsed_time(const Reply& a, const Reply& b) {
    if (a.kind() != b.kind()) return false;
    if (a.is(Reply::Kind::integer)) {
        const std::int64_t smaller = std::min(a.integer(), b.integer());
        const std::int64_t apart = std::max(a.integer(), b.integer()) - smaller;
        if (smaller >= least_milliseconds) return apart <= tolerance_ms;
        if (smaller >= least_seconds) return apart <= tolerance_s;
        return apart == 0;
    }
    return a.text() == b.text() && std::ranges::equal(a.elements(), b.elements(), equal_but_for_elapsed_time);
}

[[nodiscard]] std::string to_text(const Arguments& command) {
    std::string line;
    for (const std::string& argument : command) {
        std::string shown = argument;
        if (argument == scripts::claim.text) shown = "<claim>";
        if (argument == scripts::refresh.text) shown = "<refresh>";
        if (argument == scripts::release.text) shown = "<release>";
        line += '"' + shown + "\" ";
    }
    return line;
}

/// One sequence, played to a fresh model and to a server that is emptied first.
class Duel {
  public:
    Duel(kunci::test::RawClient& redis, std::uint64_t seed) : redis_{redis}, generator_{seed} {
        redis_.command({"FLUSHALL"});
        redis_.command({"SCRIPT", "FLUSH"});
    }

    /// Where the two differ first, for a human; empty if nowhere.
    std::optional<std::string> first_difference() {
        for (int i = 0; i < commands_per_sequence; ++i) {
            const Arguments command = generator_.next();
            played_ += to_text(command) + '\n';
            std::vector<Arguments> batch{command};
            for (const std::string& key : keys) batch.push_back({"PTTL", key});
            if (auto difference = compare(batch)) return difference;
        }
        std::vector<Arguments> contents;
        for (const std::string& key : keys) {
            contents.push_back({"TYPE", key});
            contents.push_back({"GET", key});
        }
        return compare(contents);
    }

  private:
    std::optional<std::string> compare(const std::vector<Arguments>& batch) {
        for (const Arguments& command : batch) redis_.send(command);
        std::vector<Reply> expected;
        std::ranges::generate_n(std::back_inserter(expected), static_cast<std::ptrdiff_t>(batch.size()),
                                [&] { return redis_.read_reply(); });
        const WallTime now = time_of_day();
        for (std::size_t i = 0; i < batch.size(); ++i) {
            const Reply actual = ask_model(model_, batch[i], now);
            if (equal_but_for_elapsed_time(expected[i], actual)) continue;
            return played_ + "--> " + to_text(batch[i]) + "\nRedis: " + kunci::test::to_text(expected[i]) +
                   "\nmodel: " + kunci::test::to_text(actual);
        }
        return std::nullopt;
    }

    kunci::test::RawClient& redis_;
    ModelRedis model_;
    Generator generator_;
    std::string played_;
};

TEST(ModelRedis, answers_random_commands_as_a_real_server_does) {
    const kunci::test::RedisServer server;
    kunci::test::RawClient redis = server.control();
    for (std::uint64_t seed = 1; seed <= sequences; ++seed) {
        const std::optional<std::string> difference = Duel{redis, seed}.first_difference();
        ASSERT_FALSE(difference) << "seed " << seed << '\n' << *difference;
    }
}

/// What a reply says, without the numbers that depend on the time.
[[nodiscard]] std::string gist(const Reply& reply) {
    switch (reply.kind()) {
        case Reply::Kind::error:
            return reply.text().substr(0, reply.text().find(" script: "));
        case Reply::Kind::integer:
            return reply.integer() >= least_seconds ? "time left" : std::to_string(reply.integer());
        case Reply::Kind::array: {
            std::string text = "{";
            for (const Reply& element : reply.elements()) text += gist(element) + ' ';
            return text + '}';
        }
        case Reply::Kind::nil:
            return "nil";
        case Reply::Kind::status:
        case Reply::Kind::string:
            break;
    }
    return "text";
}

TEST(ModelRedis, is_compared_in_every_situation_that_matters_to_a_lock) {
    std::set<std::string> seen;
    for (std::uint64_t seed = 1; seed <= sequences; ++seed) {
        ModelRedis model;
        Generator generator{seed};
        for (int i = 0; i < commands_per_sequence; ++i) {
            const Arguments command = generator.next();
            std::string script;
            if (command.size() > 1 && command[1] == scripts::claim.sha1) script = " claim";
            if (command.size() > 1 && command[1] == scripts::refresh.sha1) script = " refresh";
            if (command.size() > 1 && command[1] == scripts::release.sha1) script = " release";
            seen.insert(command[0] + script + ": " + gist(ask_model(model, command, time_of_day())));
        }
    }
    const std::string wrong_type = "WRONGTYPE Operation against a key holding the wrong kind of value";
    for (const std::string& situation : {
             std::string{"SET: text"},
             std::string{"SET: nil"},
             std::string{"SET: ERR syntax error"},
             std::string{"SET: ERR value is not an integer or out of range"},
             std::string{"SET: ERR invalid expire time in 'set' command"},
             std::string{"PEXPIRE: 1"},
             std::string{"PEXPIRE: 0"},
             std::string{"PEXPIRE: ERR invalid expire time in 'pexpire' command"},
             std::string{"PERSIST: 1"},
             std::string{"EVALSHA claim: NOSCRIPT No matching script. Please use EVAL."},
             std::string{"EVALSHA claim: {1 -2 }"},
             std::string{"EVALSHA claim: {1 -1 }"},
             std::string{"EVALSHA claim: {1 time left }"},
             std::string{"EVALSHA claim: {0 -1 }"},
             std::string{"EVALSHA claim: {0 time left }"},
             std::string{"EVALSHA claim: ERR kunci: the ttl must be at least 1 ms"},
             std::string{"EVALSHA claim: ERR user_script:2: attempt to compare nil with number"},
             std::string{"EVALSHA claim: ERR value is not an integer or out of range"},
             "EVALSHA claim: " + wrong_type,
             std::string{"EVALSHA refresh: -2"},
             std::string{"EVALSHA refresh: -1"},
             std::string{"EVALSHA refresh: time left"},
             "EVALSHA refresh: " + wrong_type,
             std::string{"EVALSHA release: 0"},
             std::string{"EVALSHA release: 1"},
             "EVALSHA release: " + wrong_type,
         }) {
        EXPECT_TRUE(seen.contains(situation)) << situation;
    }
}

}  // namespace
