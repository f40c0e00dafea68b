// Padding: which part of the input stays, and where in the result it lies.
#pragma once

#include <algorithm>

#include "engine/tensor/tensor.h"

namespace tt {

struct Padding {
  Geometry from;  // of the input
  Geometry to;    // of the result

  // `pad`: how much is added (or, where negative, cut) before and after each dimension, the last one first.
  Padding(const Tensor& input, absl::Span<const int64_t> pad, const Tensor& out)
      : from{input.sizes(), input.strides(), input->offset, true}, to{input.sizes(), out.strides(), out->offset, true} {
    for (size_t i = 0; i < pad.size() / 2; ++i) {
      const size_t d = from.sizes.size() - 1 - i;
      const int64_t before = pad[2 * i], after = pad[2 * i + 1];
      const int64_t kept = from.sizes[d] + std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0);
      from.offset += std::max<int64_t>(-before, 0) * from.strides[d];
      to.offset += std::max<int64_t>(before, 0) * to.strides[d];
      from.sizes[d] = to.sizes[d] = kept;
    }
  }
};

}  // namespace tt
