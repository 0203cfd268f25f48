#pragma once

#include <kunci/detail/small_bytes.hpp>

#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kunci {

/// One Redis command: its arguments, any bytes, in order; the first is the command's name.
///
/// It owns its bytes, and keeps them in the wire format of Redis (RESP bulk strings) from the start, so that
/// a connection which speaks that format itself sends `header()` and `body()` as they are. Any other client
/// takes the arguments one by one: `for (std::size_t i = 0; i < c.size(); ++i) use(c[i]);`. Commands of the
/// usual length need no heap. A value; not thread-safe.
class Command {
  public:
    /// The most arguments a command can have.
    static constexpr std::size_t capacity = 24;

    explicit Command(std::string_view name) { add(name); }

    /// Appends one argument. REQUIRES: fewer than `capacity` arguments so far.
    Command& add(std::string_view argument) {
        assert(count_ < capacity);
        body_.append(line_of('$', argument.size()).view());
        starts_[count_] = static_cast<Offset>(body_.size());
        lengths_[count_] = static_cast<Offset>(argument.size());
        ++count_;
        body_.append(argument);
        body_.append("\r\n");
        return *this;
    }

    /// Appends an integer in decimal.
    Command& add(std::integral auto number) {
        std::array<char, 24> digits;  // NOLINT: to_chars sets what is read
        const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
        return add(std::string_view{digits.data(), static_cast<std::size_t>(end - digits.data())});
    }

    /// Appends a key. The first one is the routing key: where there are several servers by slot, the command
    /// goes to the one that owns it.
    Command& add_key(std::string_view key) {
        if (routing_ == no_routing) routing_ = count_;
        return add(key);
    }

    [[nodiscard]] std::size_t size() const noexcept { return count_; }

    /// The argument at `index`, valid until the command is changed, moved or destroyed.
    [[nodiscard]] std::string_view operator[](std::size_t index) const noexcept {
        assert(index < count_);
        return body_.view().substr(starts_[index], lengths_[index]);
    }

    [[nodiscard]] std::string_view name() const noexcept { return (*this)[0]; }

    /// Empty where the command has no key.
    [[nodiscard]] std::string_view routing_key() const noexcept {
        return routing_ == no_routing ? std::string_view{} : (*this)[routing_];
    }

    /// The arguments in wire format, without the header line.
    [[nodiscard]] std::string_view body() const noexcept { return body_.view(); }

    /// The header line of the wire format ("*3\r\n"), which goes before `body()`.
    [[nodiscard]] detail::SmallBytes<24> header() const { return line_of('*', count_); }

  private:
    using Offset = std::uint32_t;  // Redis takes at most 512 MB in one argument
    static constexpr std::size_t no_routing = capacity;

    // A type and a number, as a line of the wire format.
    [[nodiscard]] static detail::SmallBytes<24> line_of(char type, std::size_t number) {
        std::array<char, 24> text{type};
        auto* end = std::to_chars(text.data() + 1, text.data() + text.size() - 2, number).ptr;
        *end++ = '\r';
        *end++ = '\n';
        // The bound says what is so anyhow; g++ 12 warns of an overflow where it cannot see it.
        const auto size = std::min(static_cast<std::size_t>(end - text.data()), text.size());
        return detail::SmallBytes<24>{{text.data(), size}};
    }

    detail::SmallBytes<384> body_;          // a release by text, with a key of usual length
    std::array<Offset, capacity> starts_;   // NOLINT: the first count_ are set
    std::array<Offset, capacity> lengths_;  // NOLINT: the first count_ are set
    std::size_t count_ = 0;
    std::size_t routing_ = no_routing;
};

}  // namespace kunci
