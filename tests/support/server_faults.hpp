#pragma once

#include "child_process.hpp"
#include "raw_client.hpp"
#include "redis_server.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Conditions of a redis-server. Each lasts as long as its object, and is taken back by the destructor if the
// server is still there.
namespace kunci::test {

/// A connection that was made before the trouble began, so that it can end it.
class ServerFault {
  public:
    explicit ServerFault(const RedisServer& server) : control_{server.control()} {}
    ServerFault(const ServerFault&) = delete;
    ServerFault& operator=(const ServerFault&) = delete;
    virtual ~ServerFault() = default;

  protected:
    /// Throws `std::runtime_error` with the server's words if it does not do it.
    Reply run(const std::vector<std::string>& command) {
        Reply reply = control_.command(command);
        if (reply.is(Reply::Kind::error)) throw std::runtime_error(command.at(0) + ": " + reply.text());
        return reply;
    }
    /// For destructors.
    void try_to_run(const std::vector<std::string>& command) noexcept {
        try {
            control_.command(command);
        } catch (
            const std::exception&) {  // NOLINT(bugprone-empty-catch): the server is gone, and its trouble too
        }
    }

  private:
    RawClient control_;
};

/// A setting is another one.
class ConfigChange : public ServerFault {
  public:
    ConfigChange(const RedisServer& server, std::string name, const std::string& value)
        : ServerFault{server}, name_{std::move(name)} {
        before_ = run({"CONFIG", "GET", name_}).elements().at(1).text();
        run({"CONFIG", "SET", name_, value});
    }
    ~ConfigChange() override { try_to_run({"CONFIG", "SET", name_, before_}); }

  private:
    std::string name_;
    std::string before_;
};

/// OOM, for commands that may need memory.
struct OutOfMemory : ConfigChange {
    explicit OutOfMemory(const RedisServer& server) : ConfigChange{server, "maxmemory", "1"} {}
};

/// NOREPLICAS, for every write.
struct TooFewReplicas : ConfigChange {
    explicit TooFewReplicas(const RedisServer& server) : ConfigChange{server, "min-replicas-to-write", "1"} {}
};

/// New connections get an error and are closed.
struct TooManyClients : ConfigChange {
    explicit TooManyClients(const RedisServer& server) : ConfigChange{server, "maxclients", "1"} {}
};

/// New connections have to know the password.
struct PasswordSet : ConfigChange {
    PasswordSet(const RedisServer& server, const std::string& password)
        : ConfigChange{server, "requirepass", password} {}

    /// Every connection but its own.
    void kill_connections() { run({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"}); }
    /// How many were ever made.
    [[nodiscard]] long connections_received() {
        constexpr std::string_view name = "total_connections_received:";
        const std::string stats = run({"INFO", "stats"}).text();
        return std::stol(stats.substr(stats.find(name) + name.size()));
    }
};

/// MISCONF, for every write: the server cannot save its data.
class FailingDisk : public ServerFault {
  public:
    explicit FailingDisk(const RedisServer& server)
        : ServerFault{server}, obstacle_{server.directory() + "/dump.rdb"}, saves_{server, "save", "3600 1"} {
        ::unlink(obstacle_.c_str());
        ::mkdir(obstacle_.c_str(), 0700);  // a folder where the file should go
        save_until("err");
    }
    ~FailingDisk() override {
        ::rmdir(obstacle_.c_str());
        try {
            save_until("ok");
        } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the server is gone
        }
    }

  private:
    void save_until(const std::string& status) {
        const bool reached = poll_until(
            [&] {
                const std::string info = run({"INFO", "persistence"}).text();
                if (info.find("rdb_bgsave_in_progress:1") != std::string::npos) return false;
                if (info.find("rdb_last_bgsave_status:" + status) != std::string::npos) return true;
                run({"BGSAVE"});
                return false;
            },
            RawClient::patience);
        if (!reached) throw std::runtime_error("BGSAVE does not end with " + status);
    }

    std::string obstacle_;
    ConfigChange saves_;
};

/// READONLY, for every write: a replica of a master that is not there. It keeps its data.
class Demoted : public ServerFault {
  public:
    explicit Demoted(const RedisServer& server) : ServerFault{server} {
        run({"REPLICAOF", "127.0.0.1", std::to_string(detail::probably_free_port())});
    }
    ~Demoted() override { try_to_run({"REPLICAOF", "NO", "ONE"}); }
};

/// MASTERDOWN, for every command: as above, and it does not answer with old data.
struct Orphaned {
    explicit Orphaned(const RedisServer& server)
        : no_old_data{server, "replica-serve-stale-data", "no"}, replica{server} {}

    ConfigChange no_old_data;
    Demoted replica;
};

/// BUSY, for every command: a script that does not end.
class BusyScript : public ServerFault {
  public:
    explicit BusyScript(const RedisServer& server)
        : ServerFault{server}, threshold_{server, "lua-time-limit", "50"}, busy_{server.control()} {
        busy_.send(std::vector<std::string>{"EVAL", "while true do end", "0"});
        const bool seen = poll_until([&] { return server.command({"PING"}).text().starts_with("BUSY"); },
                                     RawClient::patience);
        if (!seen) throw std::runtime_error("the script does not make the server busy");
    }
    ~BusyScript() override {
        try_to_run({"SCRIPT", "KILL"});
        try {
            static_cast<void>(busy_.read_reply());
        } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the server is gone
        }
    }

  private:
    ConfigChange threshold_;
    RawClient busy_;
};

/// The commands of all clients wait, or only their writes: `mode` is "ALL" or "WRITE". Nobody can end the former
/// before its time, not even the destructor, which then waits for it.
class PausedClients : public ServerFault {
  public:
    PausedClients(const RedisServer& server, const std::string& mode, std::chrono::milliseconds longest)
        : ServerFault{server} {
        run({"CLIENT", "PAUSE", std::to_string(longest.count()), mode});
    }
    ~PausedClients() override { try_to_run({"CLIENT", "UNPAUSE"}); }
};

/// An ACL user: `rules` as ACL SETUSER takes them, {"on", ">password", "+set", "~lock:*"}.
class AclUser : public ServerFault {
  public:
    AclUser(const RedisServer& server, std::string name, const std::vector<std::string>& rules)
        : ServerFault{server}, name_{std::move(name)} {
        std::vector<std::string> command{"ACL", "SETUSER", name_};
        command.insert(command.end(), rules.begin(), rules.end());
        run(command);
    }
    ~AclUser() override { try_to_run({"ACL", "DELUSER", name_}); }

  private:
    std::string name_;
};

/// The next EVALSHA gets NOSCRIPT.
inline void forget_scripts(const RedisServer& server) {
    server.command({"SCRIPT", "FLUSH"});
}

/// Every connection but the one that asks for it.
inline void kill_connections(const RedisServer& server) {
    server.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
}

}  // namespace kunci::test
