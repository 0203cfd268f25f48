#pragma once

#include <cstddef>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

namespace kunci::test {

/// Where one request or reply of RESP2 ends, in a stream that comes in pieces.
class RespFramer {
  public:
    /// Takes in more bytes.
    void feed(std::string_view bytes) { pending_.append(bytes); }

    /// The bytes of the next whole message, or nothing yet.
    [[nodiscard]] std::optional<std::string> next() {
        const auto end = end_of(0);
        if (!end) return std::nullopt;
        std::string message = pending_.substr(0, *end);
        pending_.erase(0, *end);
        return message;
    }

    /// The first argument of a request: the command's name.
    [[nodiscard]] static std::string name_of(std::string_view request) {
        const auto first = request.find("\r\n");              // behind "*<count>"
        const auto second = request.find("\r\n", first + 2);  // behind "$<length>"
        if (first == std::string_view::npos || second == std::string_view::npos) return {};
        const auto name = request.substr(second + 2);
        return std::string{name.substr(0, name.find("\r\n"))};
    }

  private:
    /// The end of the message that begins at `at`.
    [[nodiscard]] std::optional<std::size_t> end_of(std::size_t at) const {
        const auto line_end = pending_.find("\r\n", at);
        if (line_end == std::string::npos) return std::nullopt;
        const std::size_t after = line_end + 2;
        const char kind = pending_[at];
        if (kind != '$' && kind != '*') return after;
        const long count = std::strtol(pending_.c_str() + at + 1, nullptr, 10);
        if (count < 0) return after;  // nil
        if (kind == '$') {
            const std::size_t end = after + static_cast<std::size_t>(count) + 2;
            return end <= pending_.size() ? std::optional{end} : std::nullopt;
        }
        std::optional<std::size_t> end = after;
        for (long i = 0; i < count && end; ++i) end = end_of(*end);
        return end;
    }

    std::string pending_;
};

}  // namespace kunci::test
