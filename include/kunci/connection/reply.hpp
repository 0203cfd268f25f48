#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kunci {

/// One answer of a Redis server, owned. A server error is such a value too: it says for certain what
/// happened. A value; not thread-safe.
class Reply {
  public:
    enum class Kind { nil, status, integer, string, array, error };

    [[nodiscard]] static Reply nil() { return Reply{Kind::nil}; }
    [[nodiscard]] static Reply status(std::string text) { return Reply{Kind::status, std::move(text)}; }
    [[nodiscard]] static Reply string(std::string bytes) { return Reply{Kind::string, std::move(bytes)}; }
    /// `text` as the server sent it, without the leading minus: "NOSCRIPT No matching script."
    [[nodiscard]] static Reply error(std::string text) { return Reply{Kind::error, std::move(text)}; }
    [[nodiscard]] static Reply integer(std::int64_t value) {
        Reply reply{Kind::integer};
        reply.integer_ = value;
        return reply;
    }
    [[nodiscard]] static Reply array(std::vector<Reply> elements) {
        Reply reply{Kind::array};
        reply.elements_ = std::move(elements);
        return reply;
    }

    [[nodiscard]] Kind kind() const noexcept { return kind_; }
    [[nodiscard]] bool is(Kind kind) const noexcept { return kind_ == kind; }

    /// The text of a status, string or error; empty for the other kinds.
    [[nodiscard]] const std::string& text() const noexcept { return text_; }
    /// The value of an integer; 0 for the other kinds.
    [[nodiscard]] std::int64_t integer() const noexcept { return integer_; }
    /// The elements of an array; none for the other kinds.
    [[nodiscard]] const std::vector<Reply>& elements() const noexcept { return elements_; }

    friend bool operator==(const Reply&, const Reply&) = default;

  private:
    explicit Reply(Kind kind, std::string text = {}) : kind_{kind}, text_{std::move(text)} {}

    Kind kind_;
    std::int64_t integer_ = 0;
    std::string text_;
    std::vector<Reply> elements_;
};

}  // namespace kunci
