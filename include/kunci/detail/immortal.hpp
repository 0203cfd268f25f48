#pragma once

namespace kunci::detail {

/// An object of static storage duration that is never destroyed, so that guards and errors may use it until the
/// very end of the process: `static Immortal<T> instance; return instance.value;`. Needs no memory from the heap.
template <typename T>
union Immortal {
    Immortal() : value{} {}
    Immortal(const Immortal&) = delete;
    Immortal& operator=(const Immortal&) = delete;
    ~Immortal() {}  // NOLINT(modernize-use-equals-default): that would be deleted, and value must live on

    T value;
};

}  // namespace kunci::detail
