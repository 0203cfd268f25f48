#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

namespace kunci::detail {

/// A byte string that keeps up to `Inline` bytes in itself and goes to the heap only beyond that: keys,
/// tokens and commands are copied on every acquire, and hardly ever long. Not thread-safe, like any value.
template <std::size_t Inline>
class SmallBytes {
  public:
    SmallBytes() = default;
    explicit SmallBytes(std::string_view bytes) { append(bytes); }

    SmallBytes(const SmallBytes& other) { append(other.view()); }
    SmallBytes(SmallBytes&& other) noexcept { take(other); }
    SmallBytes& operator=(const SmallBytes& other) {
        if (this != &other) {
            SmallBytes copy{other};
            take(copy);
        }
        return *this;
    }
    SmallBytes& operator=(SmallBytes&& other) noexcept {
        if (this != &other) take(other);
        return *this;
    }
    ~SmallBytes() = default;

    [[nodiscard]] std::string_view view() const noexcept {
        return on_heap() ? std::string_view{heap_} : std::string_view{inline_.data(), size_};
    }
    [[nodiscard]] std::size_t size() const noexcept { return on_heap() ? heap_.size() : size_; }

    void append(std::string_view bytes) {
        if (!on_heap() && bytes.size() <= Inline - size_) {
            if (!bytes.empty()) std::memcpy(inline_.data() + size_, bytes.data(), bytes.size());
            size_ += bytes.size();
            return;
        }
        if (!on_heap()) {
            heap_.reserve(size_ + bytes.size());
            heap_.assign(inline_.data(), size_);
            size_ = beyond;
        }
        heap_.append(bytes);
    }

    friend bool operator==(const SmallBytes& a, const SmallBytes& b) noexcept { return a.view() == b.view(); }

  private:
    static constexpr std::size_t beyond = static_cast<std::size_t>(-1);  // the bytes are in heap_

    [[nodiscard]] bool on_heap() const noexcept { return size_ == beyond; }

    void take(SmallBytes& other) noexcept {
        size_ = other.size_;
        if (other.on_heap()) {
            heap_ = std::move(other.heap_);
        } else if (size_ != 0) {
            std::memcpy(inline_.data(), other.inline_.data(), size_);
        }
        other.size_ = 0;
        other.heap_.clear();
    }

    std::size_t size_ = 0;
    std::array<char, Inline> inline_;  // NOLINT: the first size_ bytes are set, the rest is never read
    std::string heap_;
};

}  // namespace kunci::detail
