// Checks of operand sizes that kernels make before they read memory.
#pragma once

#include <string_view>

#include "engine/schema/error.h"
#include "engine/tensor/tensor.h"

namespace tt {

// Checks that `t` has `count` elements, all of which a loop will read. Accepts an undefined tensor, which is not
// read.
inline void check_elements(const Tensor& t, int64_t count, std::string_view what) {
  check(!t || t.numel() == count, "expected ", count, " elements of ", what, ", got ", t ? t.numel() : 0);
}
// Checks that `t` is a vector with one element per channel. Accepts an undefined tensor.
inline void check_per_channel(const Tensor& t, int64_t channels) {
  check(!t || (t.dim() == 1 && t.size(0) == channels), "expected one element for each of ", channels, " channels, got ",
        t ? to_string(t.sizes()) : "none");
}

}  // namespace tt
