#pragma once

#include "resp_framer.hpp"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>

namespace kunci::test::detail {

using RelayClock = std::chrono::steady_clock;

/// What a relay does to the bytes of one way; the same for all its connections.
struct RelayRules {
    bool held = false;
    bool dropped = false;
    std::chrono::milliseconds least_delay{0};
    std::chrono::milliseconds most_delay{0};
    std::size_t trickle_bytes = 0;  ///< 0: no trickle.
    std::chrono::milliseconds trickle_every{0};
    std::optional<std::size_t> cut_after;
};

/// Which replies a relay swallows.
struct SwallowedReplies {
    int count = 0;
    std::string command;  ///< In lower case; empty: of any.

    [[nodiscard]] bool takes(const std::string& name) {
        if (count == 0 || (!command.empty() && lower(name) != command)) return false;
        --count;
        return true;
    }
    [[nodiscard]] static std::string lower(std::string text) {
        std::ranges::transform(text, text.begin(), [](char c) {
            return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
        });
        return text;
    }
};

/// One way of one connection: bytes that have come from the source and wait to go to the sink.
class RelayLane {
  public:
    RelayLane(int source, int sink) : source_{source}, sink_{sink} {}

    [[nodiscard]] int source() const { return source_; }
    [[nodiscard]] int sink() const { return sink_; }
    [[nodiscard]] bool broken() const { return broken_; }
    [[nodiscard]] bool finished() const { return finished_; }

    [[nodiscard]] bool wants_to_read(const RelayRules& rules) const {
        constexpr std::size_t most = 64 * 1024;
        return !rules.held && !ended_ && !broken_ && waiting_ < most;
    }

    /// Reads what is there. The whole messages that have come are given to `on_message`, which returns whether
    /// they go on.
    template <typename OnMessage>
    void read(const RelayRules& rules, RelayClock::time_point due, OnMessage on_message) {
        std::array<char, 16 * 1024> buffer;  // NOLINT: received into
        const ssize_t got = ::recv(source_, buffer.data(), buffer.size(), MSG_DONTWAIT);
        if (got < 0) {
            broken_ = errno != EAGAIN && errno != EINTR;
            return;
        }
        if (got == 0) {
            ended_ = true;
            return;
        }
        framer_.feed({buffer.data(), static_cast<std::size_t>(got)});
        while (auto message = framer_.next()) {
            if (!on_message(*message) || rules.dropped) continue;
            waiting_ += message->size();
            chunks_.push_back({std::move(*message), due});
        }
    }

    /// When there will be something to write; nothing if there is not.
    [[nodiscard]] std::optional<RelayClock::time_point> next_write(const RelayRules& rules) const {
        if (rules.held || broken_ || finished_) return std::nullopt;
        if (chunks_.empty()) {
            const bool pass_end_on = ended_ && !rules.dropped;
            return pass_end_on ? std::optional{RelayClock::time_point::min()} : std::nullopt;
        }
        return std::max(chunks_.front().due, rules.trickle_bytes > 0 ? trickle_at_ : chunks_.front().due);
    }

    /// Writes what is due. Returns the bytes that went out; `cut` is set when the last one is behind it.
    std::size_t write(const RelayRules& rules, RelayClock::time_point now, bool& cut) {
        std::size_t total = 0;
        while (!chunks_.empty() && next_write(rules).value_or(RelayClock::time_point::max()) <= now) {
            auto& bytes = chunks_.front().bytes;
            const std::size_t left = rules.cut_after ? *rules.cut_after - carried_ : bytes.size();
            const std::size_t most = rules.trickle_bytes > 0 ? rules.trickle_bytes : bytes.size();
            const std::size_t size = std::min({left, most, bytes.size()});
            if (size > 0) {
                const ssize_t sent = ::send(sink_, bytes.data(), size, MSG_NOSIGNAL | MSG_DONTWAIT);
                if (sent < 0) {
                    broken_ = errno != EAGAIN && errno != EINTR;
                    return total;
                }
                take(static_cast<std::size_t>(sent));
                total += static_cast<std::size_t>(sent);
                trickle_at_ = now + rules.trickle_every;
            }
            if (rules.cut_after && carried_ >= *rules.cut_after) {
                cut = true;
                return total;
            }
        }
        if (chunks_.empty() && ended_ && !finished_ && !rules.held && !rules.dropped) {
            ::shutdown(sink_, SHUT_WR);
            finished_ = true;
        }
        return total;
    }

    void count_from_now() { carried_ = 0; }

  private:
    struct Chunk {
        std::string bytes;
        RelayClock::time_point due;
    };

    void take(std::size_t size) {
        carried_ += size;
        waiting_ -= size;
        auto& bytes = chunks_.front().bytes;
        bytes.erase(0, size);
        if (bytes.empty()) chunks_.pop_front();
    }

    int source_;
    int sink_;
    RespFramer framer_;
    std::deque<Chunk> chunks_;
    std::size_t waiting_ = 0;
    std::size_t carried_ = 0;  // since the last call of count_from_now()
    RelayClock::time_point trickle_at_{};
    bool ended_ = false;     // the source has closed its end
    bool finished_ = false;  // and the sink has been told
    bool broken_ = false;
};

}  // namespace kunci::test::detail
