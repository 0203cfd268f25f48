// libstdc++ undefines these two, so whoever has them defined them before the first standard header.
#define min(a, b) (((a) < (b)) ? (a) : (b))
#define max(a, b) (((a) > (b)) ? (a) : (b))

// The order is what is tested.
// clang-format off
#include "outside_headers.hpp"  // made by CMake: what kunci includes of others, who need not bear what follows
#include "hostile_macros.hpp"
#include "parts.hpp"
// clang-format on

const void* first_category() {
    return &kunci::error_category();
}

std::size_t first_sizes() {
    return sizes_of_public_types();
}
