#pragma once

#include <kunci/time.hpp>

#include "history.hpp"
#include "log.hpp"
#include "server_record.hpp"
#include "support/child_process.hpp"
#include "support/redis_server.hpp"
#include "support/relay.hpp"
#include "support/wall_clock.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kunci::campaign {

/// How large a campaign is.
struct Scale {
    int processes = 4;
    int threads = 4;
    int locks = 3;
    std::chrono::milliseconds ttl{400};
};

/// What faults are injected into: a server, and worker processes that reach it each through a relay of its own.
class World {
  public:
    World(std::string program, const Scale& scale, std::uint64_t seed)
        : program_{std::move(program)},
          scale_{scale},
          seed_{seed},
          log_path_{directory_.file("log")},
          log_{log_path_},
          server_{recording_server()} {
        for (int i = 0; i < scale.processes; ++i) {
            relays_.push_back(std::make_unique<test::Relay>(server_.port()));
            clocks_.push_back(std::make_unique<test::WallClock>());
            seats_.emplace_back();
            start_worker(static_cast<std::size_t>(i));
        }
    }

    [[nodiscard]] test::RedisServer& server() { return server_; }
    [[nodiscard]] test::Relay& relay(std::size_t seat) { return *relays_.at(seat); }
    [[nodiscard]] test::WallClock& clock(std::size_t seat) { return *clocks_.at(seat); }
    [[nodiscard]] std::size_t seats() const { return seats_.size(); }
    [[nodiscard]] const Scale& scale() const { return scale_; }
    [[nodiscard]] Log& log() const { return *log_; }

    void pause_worker(std::size_t seat) {
        seats_[seat].paused_at = now();
        seats_[seat].process->pause();
    }
    void resume_worker(std::size_t seat) {
        seats_[seat].process->resume();
        pauses_.push_back({seats_[seat].number, seats_[seat].paused_at, now()});
    }
    /// Kills it, and lets another process take its place.
    void replace_worker(std::size_t seat) {
        if (next_number_ >= static_cast<int>(max_processes)) return;
        seats_[seat].process->kill();
        killed_.push_back(seats_[seat].number);
        start_worker(seat);
    }

    /// Ends all faults of the relays, and waits until every worker has had its turns and ended.
    void settle() {
        for (auto& relay : relays_) relay->heal();
        log_->phase = Phase::settle;
        for (auto& seat : seats_) {
            constexpr std::chrono::seconds patience{90};
            const auto code = seat.process->wait_for_exit(patience);
            if (code != 0) broken_.push_back("process " + std::to_string(seat.number) + " ended badly");
        }
    }

    /// What happened. REQUIRES: settle() was called.
    [[nodiscard]] History history() {
        History history{.tenures = read_tenures(*log_), .pauses = pauses_, .killed = killed_};
        history.ttl = std::chrono::nanoseconds{scale_.ttl}.count();
        history.wall_offset = std::chrono::system_clock::now().time_since_epoch().count() - now();
        history.without_turn = broken_;
        for (const auto& seat : seats_) note_turns(seat.number, history);
        const auto empty = [this] { return server_.command({"DBSIZE"}).integer() == 0; };
        if (!test::poll_until(empty, scale_.ttl + std::chrono::seconds{2})) {
            history.keys_left.push_back(server_.cli({"KEYS", "*"}));
        }
        server_.kill();
        history.server = read_server_record(server_.directory());
        return history;
    }

  private:
    struct Seat {
        int number = 0;
        std::int64_t paused_at = 0;
        std::unique_ptr<test::ChildProcess> process;
    };

    [[nodiscard]] static std::int64_t now() { return SteadyClock::now().time_since_epoch().count(); }

    void start_worker(std::size_t seat) {
        const int number = next_number_++;
        std::vector<std::string> arguments{program_,
                                           "--worker",
                                           log_path_,
                                           relays_[seat]->url(),
                                           std::to_string(number),
                                           std::to_string(scale_.threads),
                                           std::to_string(scale_.locks),
                                           std::to_string(scale_.ttl.count()),
                                           std::to_string(seed_ * 131 + static_cast<std::uint64_t>(number))};
        seats_[seat].number = number;
        seats_[seat].process = std::make_unique<test::ChildProcess>(
            std::move(arguments), test::ChildSettings{.environment = clocks_[seat]->environment()});
    }

    void note_turns(int process, History& history) const {
        for (int thread = 0; thread < scale_.threads; ++thread) {
            for (int lock = 0; lock < scale_.locks; ++lock) {
                const int turn = log_->turns_in_settling.at(static_cast<std::size_t>(process))
                                     .at(static_cast<std::size_t>(thread))
                                     .at(static_cast<std::size_t>(lock));
                if (turn == 1) continue;
                history.without_turn.push_back("process " + std::to_string(process) + ", thread " +
                                               std::to_string(thread) + ", lock " + std::to_string(lock));
            }
        }
    }

    std::string program_;
    Scale scale_;
    std::uint64_t seed_;
    test::detail::TemporaryDirectory directory_;
    std::string log_path_;
    SharedLog log_;
    test::RedisServer server_;
    std::vector<std::unique_ptr<test::Relay>> relays_;
    std::vector<std::unique_ptr<test::WallClock>> clocks_;
    std::vector<Seat> seats_;
    int next_number_ = 0;
    std::vector<Pause> pauses_;
    std::vector<int> killed_;
    std::vector<std::string> broken_;
};

}  // namespace kunci::campaign
