#pragma once

#include <chrono>

namespace kunci::test {

/// How much later than in theory something may happen on a busy machine with a sanitizer. The only such figure.
inline constexpr std::chrono::milliseconds slack{500};

}  // namespace kunci::test
