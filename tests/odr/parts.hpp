#pragma once

#include "whole_library.hpp"

#include <cstddef>

const void* first_category();
std::size_t first_sizes();

/// Sizes as the digits of a number: they differ if any one does.
static std::size_t sizes_of_public_types() {
    std::size_t sum = 0;
    for (const std::size_t size : {sizeof(kunci::LockOptions), sizeof(kunci::ClientOptions),
                                   sizeof(kunci::LockToken), sizeof(kunci::LockGuard), sizeof(kunci::Command),
                                   sizeof(kunci::Reply), sizeof(kunci::Outcome), sizeof(kunci::Event)}) {
        sum = sum * 8191 + size;
    }
    return sum;
}
