#pragma once

#include <kunci/adapters/hiredis/reply_parser.hpp>
#include <kunci/adapters/hiredis/socket.hpp>
#include <kunci/adapters/hiredis/stream.hpp>
#include <kunci/connection/command.hpp>
#include <kunci/connection/reply.hpp>
#include <kunci/errc.hpp>
#include <kunci/time.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace kunci::hiredis_detail {

/// How much of a message has gone out, and why not all of it.
struct Sent {
    enum class Extent { nothing, part, all };
    Extent extent = Extent::nothing;
    std::string error = {};
    bool late = false;  ///< Nothing is wrong but that the deadline has come.
};

/// A reply, or why there is none.
struct Received {
    std::optional<Reply> reply;
    std::string error = {};
    Errc code = Errc::connection_lost;  ///< `no_answer`: nothing is wrong but that the deadline has come.
};

/// One connection from the first byte to the last: bytes out, replies in. One thread at a time.
class Session {
  public:
    explicit Session(Stream stream) : stream_{std::move(stream)} {}
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;
    ~Session() = default;

    /// Sends both pieces, one behind the other. Tries at least once, however late it is.
    [[nodiscard]] Sent send(std::string_view first, std::string_view second, Deadline deadline) {
        auto extent = Sent::Extent::nothing;
        while (true) {
            IoResult result = stream_.send(first, second);
            if (result.status == IoResult::Status::done) {
                remove_prefix(first, second, result.bytes);
                if (first.empty() && second.empty()) return {Sent::Extent::all};
            }
            if (result.bytes != 0 || result.in_doubt) extent = Sent::Extent::part;
            if (result.status == IoResult::Status::failed) return {extent, std::move(result.error)};
            if (!stream_.wait_to_send(deadline) || SteadyClock::now() >= deadline) {
                return {extent, "send: no room before the deadline", true};
            }
        }
    }

    /// Waits for the next reply. The deadline holds however the bytes come in.
    [[nodiscard]] Received receive(Deadline deadline) {
        if (parser_.has_more()) {
            if (Received received; is_decided(parser_.advance({}), received)) return received;
        }
        bool wait_first = !stream_.buffers_input();
        while (true) {
            if (wait_first && !stream_.wait_to_receive(deadline)) return late();
            wait_first = true;
            std::array<char, 16 * 1024> buffer;  // NOLINT: received into
            IoResult result = stream_.receive(buffer.data(), buffer.size());
            switch (result.status) {
                case IoResult::Status::done:
                    if (Received received;
                        is_decided(parser_.advance({buffer.data(), result.bytes}), received)) {
                        return received;
                    }
                    wait_first = !stream_.buffers_input();
                    break;
                case IoResult::Status::again:
                    break;
                case IoResult::Status::closed:
                    return {{}, "the server closed the connection before it had answered"};
                case IoResult::Status::failed:
                    return {{}, std::move(result.error)};
            }
            if (SteadyClock::now() >= deadline) return late();
        }
    }

    [[nodiscard]] int fd() const noexcept { return stream_.fd(); }

    /// Bytes beyond the last reply have come in: the stream is out of step.
    [[nodiscard]] bool has_more() const noexcept { return parser_.has_more(); }

    /// Whether it may be used again: the server has neither closed it nor sent anything unasked.
    [[nodiscard]] bool is_quiet() { return stream_.is_quiet(); }

    /// Writes `recall`, if there is one, as far as it goes without waiting, and ends the session.
    /// REQUIRES for a recall: everything sent before has gone out whole, and the stream is sound.
    void give_up(const Command* recall) {
        if (recall != nullptr) {
            const auto header = recall->header();
            std::string_view first = header.view();
            std::string_view second = recall->body();
            while (!first.empty() || !second.empty()) {
                const IoResult result = stream_.send(first, second);
                if (result.status != IoResult::Status::done) break;
                remove_prefix(first, second, result.bytes);
            }
        }
        stream_.finish();
    }

  private:
    static void remove_prefix(std::string_view& first, std::string_view& second, std::size_t count) {
        const std::size_t from_first = std::min(count, first.size());
        first.remove_prefix(from_first);
        second.remove_prefix(count - from_first);
    }

    [[nodiscard]] bool is_decided(ReplyParser::Progress progress, Received& received) {
        if (progress == ReplyParser::Progress::complete) received.reply = parser_.take();
        if (progress == ReplyParser::Progress::malformed) {
            received = {{}, "malformed reply: " + parser_.error(), Errc::bad_reply};
        }
        return progress != ReplyParser::Progress::incomplete;
    }

    static Received late() { return {{}, "no answer before the deadline", Errc::no_answer}; }

    Stream stream_;
    ReplyParser parser_;
};

/// The session that a client has, or none. One thread at a time, except for `close_inherited()`.
class SessionSlot {
  public:
    SessionSlot() = default;
    SessionSlot(const SessionSlot&) = delete;
    SessionSlot& operator=(const SessionSlot&) = delete;
    ~SessionSlot() = default;

    [[nodiscard]] explicit operator bool() const noexcept { return session_ != nullptr; }
    /// REQUIRES: there is one.
    [[nodiscard]] Session* operator->() const noexcept { return session_.get(); }

    void put(std::unique_ptr<Session> session) {
        session_ = std::move(session);
        socket_.store(number_of_socket(session_->fd()));
        fd_.store(session_->fd());
    }
    [[nodiscard]] std::unique_ptr<Session> take() {
        fd_.store(-1);
        return std::move(session_);
    }
    void reset() { take().reset(); }

    /// In a forked child, whatever the parent's threads were doing: gives up the descriptor without a word to
    /// the server, which goes on talking to the parent.
    void close_inherited() noexcept {
        const int fd = fd_.exchange(-1);
        // A child that has closed all its descriptors may have opened another one of this number.
        if (fd >= 0 && number_of_socket(fd) == socket_.load()) ::close(fd);
    }

  private:
    /// What tells one socket from all others that are open; 0 if it is none.
    [[nodiscard]] static ino_t number_of_socket(int fd) noexcept {
        struct stat status {};
        return ::fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode) ? status.st_ino : 0;
    }

    std::unique_ptr<Session> session_;
    std::atomic<ino_t> socket_{0};
    std::atomic<int> fd_{-1};  // of session_; set only while that descriptor is open and its own
};

}  // namespace kunci::hiredis_detail
