#pragma once

#include <kunci/adapters/hiredis/redis_url.hpp>
#include <kunci/adapters/hiredis/session.hpp>
#include <kunci/connection/command.hpp>
#include <kunci/connection/outcome.hpp>
#include <kunci/connection/reply.hpp>
#include <kunci/connection/server_error.hpp>
#include <kunci/error.hpp>
#include <kunci/time.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kunci::hiredis_detail {

/// Why a server does not serve us, in its own words: `text` is the error that it answered to `step`.
[[nodiscard]] inline Errc classify_refusal(std::string_view step, std::string_view text) {
    const std::string_view word = server_error_word(text);
    if (const auto known = not_executed_error(word)) return *known;
    if (word == "DENIED") return Errc::not_permitted;  // protected mode
    if (text.starts_with("ERR max number of clients")) return Errc::too_many_clients;
    if (word == "ERR" && step == "AUTH") return Errc::not_permitted;
    return word == "ERR" && step == "SELECT" ? Errc::no_such_database : Errc::server_refused;
}

/// Whether an error is how a server turns a whole connection away. Without a greeting it is heard only in place of
/// the first reply, and nothing was executed.
[[nodiscard]] inline bool refuses_the_connection(std::string_view text) {
    return text.starts_with("ERR max number of clients") || text.starts_with("DENIED ");
}

/// Whether it comes from a replica: the address may lead to the new master by now.
[[nodiscard]] inline bool is_said_by_a_replica(std::string_view text) {
    const std::string_view word = server_error_word(text);
    return word == "READONLY" || word == "MASTERDOWN";
}

/// What is said on a new connection before anything else: who we are, and which database we mean. All of it
/// goes out at once; where there is nothing to say, nothing is sent.
class Greeting {
  public:
    /// `always`: a PING stands in where there is nothing to say, for a stream that only an answer proves.
    Greeting(const RedisUrl& url, bool always) : password_{url.password}, over_tls_{always} {
        if (url.has_credentials()) {
            Command auth{"AUTH"};
            if (!url.user.empty()) auth.add(url.user);
            say("AUTH", auth.add(url.password));
        }
        if (url.database != 0) say("SELECT", Command{"SELECT"}.add(url.database));
        if (always && steps_.empty()) say("PING", Command{"PING"});
    }

    /// Sends it and checks the answers; empty if the server serves us. `where` begins the fault's message.
    [[nodiscard]] std::optional<Fault> exchange(Session& session, const std::string& where,
                                                Deadline deadline) const {
        if (steps_.empty()) return std::nullopt;
        const Sent sent = session.send(bytes_, {}, deadline);
        for (const std::string_view step : steps_) {
            // Also if sending failed: a server that refuses a connection says why before it closes it.
            const Received received = session.receive(deadline);
            if (!received.reply) {
                const std::string& error = sent.error.empty() ? received.error : sent.error;
                return Fault::not_sent(code_of_silence(received), where + std::string{step} + ": " + error);
            }
            // PING only proves the stream: that this user may not PING does not matter.
            const bool harmless = step == "PING" && received.reply->text().starts_with("NOPERM");
            if (received.reply->is(Reply::Kind::error) && !harmless) {
                return refusal(step, received.reply->text(), where);
            }
        }
        return std::nullopt;
    }

    /// The fault for an error with which the server refused the connection.
    [[nodiscard]] Fault refusal(std::string_view step, const std::string& text,
                                const std::string& where) const {
        return Fault::not_sent(classify_refusal(step, text),
                               where + std::string{step} + ": " + harmless(text),
                               text.substr(0, text.find(' ')));
    }

  private:
    [[nodiscard]] Errc code_of_silence(const Received& received) const {
        if (received.code == Errc::no_answer) return Errc::connect_timeout;
        return over_tls_ ? Errc::tls_failed : Errc::unreachable;
    }

    void say(std::string_view step, const Command& command) {
        bytes_.append(command.header().view()).append(command.body());
        steps_.push_back(step);
    }

    /// Servers and proxies that do not know AUTH quote its arguments in their error.
    [[nodiscard]] std::string harmless(std::string text) const {
        text = text.substr(0, text.find(", with args beginning with"));
        if (password_.empty()) return text;
        for (std::size_t at = 0; (at = text.find(password_, at)) != std::string::npos; at += 3) {
            text.replace(at, password_.size(), "***");
        }
        return text;
    }

    std::string password_;
    bool over_tls_;
    std::string bytes_;
    std::vector<std::string_view> steps_;  // literals
};

}  // namespace kunci::hiredis_detail
