#pragma once

#include <arpa/inet.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace kunci {

/// Where a Redis server is and who asks, as a URL says it. A value; not thread-safe.
struct RedisUrl {
    bool tls = false;           ///< The scheme was `rediss`.
    std::string host;           ///< A name or an address, IPv6 without brackets; empty for a Unix socket.
    std::uint16_t port = 6379;  ///< Means nothing for a Unix socket.
    std::string socket_path;    ///< The path of the Unix socket; empty for TCP.
    std::string user;           ///< Empty: the server's default user.
    std::string password;       ///< Empty: none.
    int database = 0;

    [[nodiscard]] bool is_unix_socket() const noexcept { return !socket_path.empty(); }
    [[nodiscard]] bool has_credentials() const noexcept { return !user.empty() || !password.empty(); }

    /// For messages: `host:port/db`, or the socket's path. Neither user nor password is in it.
    [[nodiscard]] std::string address() const {
        if (is_unix_socket()) return socket_path;
        const bool bracketed = host.find(':') != std::string::npos;
        return (bracketed ? "[" + host + "]" : host) + ":" + std::to_string(port) + "/" +
               std::to_string(database);
    }
};

namespace detail {

/// Takes a URL apart. No message repeats a piece of the URL in which a password may hide: a misplaced '/' or
/// '@' moves a password into any part.
class RedisUrlParser {
  public:
    explicit RedisUrlParser(std::string_view url) : rest_{url} {}

    RedisUrl parse() {
        if (rest_.empty()) fail("is empty; expected " + forms());
        if (rest_.find('\0') != std::string_view::npos) fail("contains a NUL byte");
        const std::string scheme = take_scheme();
        if (scheme == "unix") {
            parse_unix();
        } else if (scheme == "redis" || scheme == "rediss") {
            url_.tls = scheme == "rediss";
            parse_tcp();
        } else {
            fail("has the unknown scheme '" + scheme + "'; expected " + forms());
        }
        return url_;
    }

  private:
    [[noreturn]] static void fail(const std::string& what) {
        throw std::invalid_argument("kunci: the Redis URL " + what);
    }

    static std::string forms() {
        return "redis://[user[:password]@]host[:port][/db], the same with rediss://, or "
               "unix://[user[:password]@]/path[?db=n]";
    }

    std::string take_scheme() {
        const std::size_t end = rest_.find("://");
        std::string scheme{rest_.substr(0, end)};
        bool valid = end != std::string_view::npos && !scheme.empty();
        for (char& c : scheme) {
            const auto byte = static_cast<unsigned char>(c);
            valid = valid && (std::isalnum(byte) != 0 || c == '+' || c == '-' || c == '.');
            c = static_cast<char>(std::tolower(byte));
        }
        if (!valid) fail("has no scheme; expected " + forms());
        rest_.remove_prefix(end + 3);
        return scheme;
    }

    void parse_tcp() {
        std::string_view authority = take_until("/?#");
        reject_stray_at_sign();
        authority = take_credentials(authority);
        parse_host_and_port(authority);
        if (rest_.starts_with('/')) {
            rest_.remove_prefix(1);
            const std::string_view database = take_until("?#");
            if (!database.empty()) parse_database(database, "after the '/'");
        }
        reject_fragment();
        if (const auto [name, value] = take_parameter(); !name.empty()) unknown_parameter(name);
    }

    void parse_unix() {
        const std::string_view authority = take_until("/");
        if (!take_credentials(authority).empty() || rest_.empty()) {
            fail(
                "has no path after 'unix://'; expected unix://[user[:password]@]/path, with '/' in a user "
                "or password written as %2F");
        }
        url_.socket_path = decode(take_until("?#"), "path");
        reject_fragment();
        while (true) {
            const auto [name, value] = take_parameter();
            if (name.empty()) return;
            if (name != "db") unknown_parameter(name);
            parse_database(value, "in '?db='");
        }
    }

    std::string_view take_until(std::string_view ends) {
        const std::string_view taken = rest_.substr(0, rest_.find_first_of(ends));
        rest_.remove_prefix(taken.size());
        return taken;
    }

    void reject_stray_at_sign() const {
        if (rest_.find('@') == std::string_view::npos) return;
        fail(
            "has an '@' behind the host: in a user or password, '/', '?' and '#' must be written as %2F, "
            "%3F and %23");
    }

    void reject_fragment() const {
        if (rest_.find('#') != std::string_view::npos) fail("has a fragment ('#'), which means nothing here");
    }

    /// Sets user and password, and returns what follows the '@'.
    std::string_view take_credentials(std::string_view authority) {
        const std::size_t at = authority.rfind('@');
        if (at == std::string_view::npos) return authority;
        const std::string_view credentials = authority.substr(0, at);
        const std::size_t colon = credentials.find(':');
        url_.user = decode(credentials.substr(0, colon), "user");
        if (colon != std::string_view::npos)
            url_.password = decode(credentials.substr(colon + 1), "password");
        return authority.substr(at + 1);
    }

    void parse_host_and_port(std::string_view authority) {
        const bool bracketed = authority.starts_with('[');
        const std::size_t closing = authority.find(']');
        if (bracketed != (closing != std::string_view::npos)) {
            fail("has an unbalanced bracket in its host; expected [address] for IPv6");
        }
        const std::size_t end = bracketed ? closing + 1 : authority.find(':');
        const std::string_view port = authority.substr(std::min(end, authority.size()));
        if (bracketed) {
            parse_ipv6(authority.substr(1, closing - 1));
        } else {
            parse_host_name(authority.substr(0, end));
        }
        if (!port.empty()) parse_port(port);
    }

    void parse_ipv6(std::string_view text) {
        url_.host = decode(text, "host");
        if (url_.host.empty()) missing_host();
        in6_addr ignored{};
        const std::string without_zone = url_.host.substr(0, url_.host.find('%'));
        if (::inet_pton(AF_INET6, without_zone.c_str(), &ignored) != 1) {
            fail("has a host in brackets that is no IPv6 address");
        }
    }

    void parse_host_name(std::string_view name) {
        if (name.empty()) missing_host();
        for (const char c : name) {
            const auto byte = static_cast<unsigned char>(c);
            if (byte <= ' ' || byte == 0x7F || c == '%' || c == '[') {
                fail("has a character in its host that no host name contains");
            }
        }
        url_.host = name;
    }

    [[noreturn]] static void missing_host() { fail("has no host; expected redis://host[:port][/db]"); }

    void parse_port(std::string_view with_colon) {
        const std::string_view digits = with_colon.substr(1);
        const bool colon = with_colon.front() == ':';
        if (colon && digits.find(':') != std::string_view::npos) {
            fail("has several colons behind its host; an IPv6 address must be in brackets");
        }
        const std::optional<int> port = colon ? number(digits, 65535) : std::nullopt;
        if (!port || *port == 0) fail("has a bad port; expected a number from 1 to 65535");
        url_.port = static_cast<std::uint16_t>(*port);
    }

    void parse_database(std::string_view digits, const std::string& place) {
        const std::optional<int> database = number(digits, std::numeric_limits<int>::max());
        if (!database) fail("has a bad db " + place + "; expected a number, 0 or greater");
        url_.database = *database;
    }

    struct Parameter {
        std::string_view name;
        std::string_view value;
    };

    /// The next parameter of the query; without a name if there is none.
    Parameter take_parameter() {
        if (rest_.size() < 2) return {};
        rest_.remove_prefix(1);
        const std::string_view parameter = take_until("&");
        const std::size_t equals = parameter.find('=');
        if (equals == std::string_view::npos || equals == 0) {
            fail("has a query that is not of the form ?name=value");
        }
        return {parameter.substr(0, equals), parameter.substr(equals + 1)};
    }

    [[noreturn]] void unknown_parameter(std::string_view name) const {
        fail("has the unknown query parameter '" + std::string{name} + "'; expected " +
             (url_.is_unix_socket() ? "?db=n only" : "none, and the db as redis://host:port/db"));
    }

    static std::optional<int> number(std::string_view digits, int most) {
        int value = 0;
        const char* end = digits.data() + digits.size();
        const auto [stop, error] = std::from_chars(digits.data(), end, value);
        if (error != std::errc{} || stop != end || value < 0 || value > most) return std::nullopt;
        if (digits.front() == '-') return std::nullopt;  // "-0"
        return value;
    }

    static std::string decode(std::string_view text, const std::string& part) {
        std::string bytes;
        bytes.reserve(text.size());
        for (std::size_t i = 0; i < text.size(); ++i) {
            if (text[i] != '%') {
                bytes += text[i];
                continue;
            }
            unsigned value = 0;
            const char* digits = text.data() + i + 1;
            const bool complete = text.size() - i > 2;
            if (!complete || std::from_chars(digits, digits + 2, value, 16).ptr != digits + 2) {
                fail("has a bad percent escape in its " + part + "; expected '%' and two hexadecimal digits");
            }
            if (value == 0) fail("contains a NUL byte (%00) in its " + part);
            bytes += static_cast<char>(value);
            i += 2;
        }
        return bytes;
    }

    std::string_view rest_;
    RedisUrl url_;
};

}  // namespace detail

/// Parses `redis://[user[:password]@]host[:port][/db]`, `rediss://` likewise, or
/// `unix://[user[:password]@]/path[?db=n]`. User, password and path are percent-decoded; an IPv6 address
/// stands in brackets; without a port it is 6379, without a db 0. `redis://:password@host` has a password
/// and no user.
///
/// Throws `std::invalid_argument` that says which part is wrong and what was expected, never a password.
[[nodiscard]] inline RedisUrl parse_redis_url(std::string_view url) {
    return detail::RedisUrlParser{url}.parse();
}

}  // namespace kunci
