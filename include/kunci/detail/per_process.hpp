#pragma once

#include <kunci/detail/process_mark.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

namespace kunci::detail {

/// A value with threads, locks or descriptors in it, of which a forked child makes its own. The parent's cannot
/// be used there: a thread that is not there may hold its mutexes for ever. Nor can it be destroyed, so the child
/// leaves it where it is, after `T::leave_to_parent()`, which must not take a lock. Thread-safe.
template <typename T>
class PerProcess {
  public:
    using Make = std::function<std::unique_ptr<T>()>;

    explicit PerProcess(Make make) : make_{std::move(make)}, copy_{new Copy{make_(), {}, nullptr}} {}
    PerProcess(const PerProcess&) = delete;
    PerProcess& operator=(const PerProcess&) = delete;
    ~PerProcess() {
        Copy* copy = copy_.load(std::memory_order_acquire);
        if (copy->mark.is_of_this_process()) {
            delete copy;
        } else {
            leave(copy);
        }
    }

    /// Throws what making it throws, in a forked child at the first call.
    [[nodiscard]] T& get() {
        Copy* copy = copy_.load(std::memory_order_acquire);
        if (!copy->mark.is_of_this_process()) [[unlikely]]
            copy = renew(copy);
        return *copy->value;
    }

  private:
    struct Copy {
        std::unique_ptr<T> value;
        ProcessMark mark;
        Copy* next_left;
    };

    [[nodiscard]] Copy* renew(Copy* inherited) {
        auto fresh = std::make_unique<Copy>(Copy{make_(), {}, nullptr});
        if (copy_.compare_exchange_strong(inherited, fresh.get(), std::memory_order_acq_rel)) {
            leave(inherited);
            return fresh.release();
        }
        return inherited;  // another thread of this process was first
    }

    /// Never freed, and reachable for ever, so that it does not look like a leak.
    static void leave(Copy* copy) noexcept {
        static std::atomic<Copy*> left{nullptr};
        copy->value->leave_to_parent();
        copy->next_left = left.load();
        while (!left.compare_exchange_weak(copy->next_left, copy)) {
        }
    }

    Make make_;
    std::atomic<Copy*> copy_;
};

}  // namespace kunci::detail
