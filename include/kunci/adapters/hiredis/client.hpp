#pragma once

#include <kunci/adapters/hiredis/connector.hpp>
#include <kunci/adapters/hiredis/greeting.hpp>
#include <kunci/adapters/hiredis/options.hpp>
#include <kunci/adapters/hiredis/redis_url.hpp>
#include <kunci/adapters/hiredis/session.hpp>
#include <kunci/adapters/hiredis/turnstile.hpp>
#include <kunci/connection/command.hpp>
#include <kunci/connection/outcome.hpp>
#include <kunci/connection/reply.hpp>
#include <kunci/error.hpp>
#include <kunci/time.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace kunci::hiredis_detail {

/// One server, one session with it at a time, one command on that at a time. Thread-safe.
class Client {
  public:
    Client(const RedisUrl& url, const HiredisOptions& options) : connector_{url, options} {}
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;
    ~Client() = default;

    /// In a forked child, instead of destroying it.
    void leave_to_parent() noexcept { session_.close_inherited(); }

    /// "host:port/db", or the path of the Unix socket.
    [[nodiscard]] const std::string& address() const noexcept { return connector_.address(); }

    /// As the Connection and RecallingConnection requirements say; `recall` may be null.
    [[nodiscard]] Outcome execute(const Command& command, Deadline deadline, const Command* recall) {
        if (!turnstile_.enter(deadline)) {
            return unsent(Errc::not_sent_in_time, "other commands held the connection until the deadline");
        }
        const Turn turn{turnstile_};
        now_ = SteadyClock::now();
        if (now_ >= deadline) {
            return unsent(Errc::not_sent_in_time, "the deadline had passed before it could be sent");
        }
        drop_dead_session();
        const bool reused{session_};
        if (std::optional<Fault> fault = connect(deadline)) return *std::move(fault);
        Sent sent = send(command, deadline);
        if (sent.extent == Sent::Extent::nothing && reused) {  // dead after all; not a byte of it was taken
            session_.reset();
            if (std::optional<Fault> fault = connect(deadline)) return *std::move(fault);
            sent = send(command, deadline);
        }
        if (sent.extent != Sent::Extent::all) return give_up_sending(sent);
        return await_reply(deadline, recall);
    }

  private:
    class Turn {
      public:
        explicit Turn(Turnstile& turnstile) : turnstile_{turnstile} {}
        Turn(const Turn&) = delete;
        Turn& operator=(const Turn&) = delete;
        ~Turn() { turnstile_.leave(); }

      private:
        Turnstile& turnstile_;
    };

    /// How long a session may be idle and still be used without a look at it.
    static constexpr Duration trusted_for = std::chrono::milliseconds{100};

    [[nodiscard]] Fault unsent(Errc code, const std::string& why) const {
        return Fault::not_sent(code, connector_.where() + why);
    }

    /// Nothing has been sent yet, so replacing a session that the server has closed is no ambiguity. One with
    /// an unanswered command is never reused, also where an exception ended the wait for the answer.
    void drop_dead_session() {
        if (!session_) return;
        const bool look = suspect_ || now_ - used_at_ > trusted_for;
        if (unanswered_ || (look && !session_->is_quiet())) session_.reset();
    }

    /// Makes a session if there is none.
    [[nodiscard]] std::optional<Fault> connect(Deadline deadline) {
        if (session_) return std::nullopt;
        unanswered_ = false;
        suspect_ = false;
        std::unique_ptr<Session> made;
        if (std::optional<Fault> fault = connector_.connect(made, deadline)) return fault;
        session_.put(std::move(made));
        now_ = used_at_ = SteadyClock::now();
        if (now_ < deadline) return std::nullopt;
        return unsent(Errc::not_sent_in_time, "connected, but only after the deadline");
    }

    [[nodiscard]] Sent send(const Command& command, Deadline deadline) {
        unanswered_ = true;
        const auto header = command.header();
        return session_->send(header.view(), command.body(), deadline);
    }

    [[nodiscard]] Outcome give_up_sending(const Sent& sent) {
        const std::unique_ptr<Session> session = session_.take();
        if (sent.extent == Sent::Extent::part) {
            session->give_up(nullptr);  // anything more would be read as the rest of the command
            const Errc code = sent.late ? Errc::no_answer : Errc::connection_lost;
            return Fault::maybe_executed(connector_.where() + sent.error, code);
        }
        // The server may have said why it does not want this connection.
        const Received words = session->receive(TimePoint::min());
        const bool told = words.reply && words.reply->is(Reply::Kind::error);
        const Errc code = sent.late ? Errc::not_sent_in_time : Errc::unreachable;
        Fault fault = told ? connector_.refusal(words.reply->text()) : unsent(code, sent.error);
        connector_.failed(fault);
        return fault;
    }

    [[nodiscard]] Outcome await_reply(Deadline deadline, const Command* recall) {
        Received received = session_->receive(deadline);
        // With more bytes than one reply nobody can tell which of them answer this command.
        if (received.reply && session_->has_more()) {
            received = {{}, "malformed reply: more than one", Errc::bad_reply};
        }
        if (!received.reply) {
            const std::unique_ptr<Session> session = session_.take();
            // After any other fault the caller may repeat the command; a recall could then undo that.
            session->give_up(received.code == Errc::no_answer ? recall : nullptr);
            return Fault::maybe_executed(connector_.where() + received.error, received.code);
        }
        unanswered_ = false;
        used_at_ = now_;
        // Some errors are a server's last words: it closes the connection behind them.
        suspect_ = received.reply->is(Reply::Kind::error);
        if (suspect_) {
            const std::string& text = received.reply->text();
            if (refuses_the_connection(text)) {
                session_.reset();
                Fault fault = connector_.refusal(text);
                connector_.failed(fault);
                return fault;
            }
            if (is_said_by_a_replica(text)) session_.reset();
        }
        return *std::move(received.reply);
    }

    Turnstile turnstile_;
    // Everything below belongs to the thread whose turn it is.
    Connector connector_;
    SessionSlot session_;
    TimePoint now_;            // when this call began to use the session
    TimePoint used_at_;        // when the last call that was answered began
    bool unanswered_ = false;  // a command went out, at least in part, and its reply is missing
    bool suspect_ = false;     // to be looked at before it is used again
};

}  // namespace kunci::hiredis_detail
