// What a kernel checks of its tensors before it reads them, whoever called it with what.
#pragma once

#include <string_view>

#include "engine/schema/error.h"
#include "engine/tensor/tensor.h"

namespace tt {

// Requires so many elements of a tensor that a loop will read; undefined ones are not read.
inline void check_elements(const Tensor& t, int64_t count, std::string_view what) {
  check(!t || t.numel() == count, "expected ", count, " elements of ", what, ", got ", t ? t.numel() : 0);
}
// The same of a vector with a number for each channel.
inline void check_per_channel(const Tensor& t, int64_t channels) {
  check(!t || (t.dim() == 1 && t.size(0) == channels), "expected a number for each of ", channels, " channels, got ",
        t ? to_string(t.sizes()) : "none");
}

}  // namespace tt
