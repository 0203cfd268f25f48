#include "parts.hpp"

#include <cstdio>

// Linking this with first.cpp, compiled as another C++ and after hostile macros, shows that nothing in kunci
// is defined twice; running it, that both units mean the same things by the same names.
int main() {
    if (first_category() != &kunci::error_category()) {
        std::puts("the two units have different error categories");
        return 1;
    }
    if (first_sizes() != sizes_of_public_types()) {
        std::puts("the two units have different public types");
        return 1;
    }
}
