// Offsets of flip, tril and triu.
#pragma once

#include <cstdint>

#include "engine/schema/rules/shape_rules.h"
#include "engine/tensor/tensor.h"

namespace tt {

// The result of flip() as a view of its input: strides, negated along flipped dimensions, and the first element's
// offset.
struct FlippedView {
  Sizes strides;
  int64_t start = 0;  // in elements, relative to the input's first element

  FlippedView(const Tensor& input, absl::Span<const int64_t> dims) : strides(input.strides()) {
    for (int64_t dim : dims) {
      if (input.dim() == 0) break;
      const int64_t d = shape_rules::wrap_dim(dim, input.dim());
      start += (input.size(d) - 1) * input.stride(d);
      strides[d] = -strides[d];
    }
  }
};

// The column of row i of a matrix that is on the given diagonal. Saturates where the sum would overflow.
constexpr int64_t diagonal_column(int64_t i, int64_t diagonal) {
  constexpr int64_t kLast = INT64_MAX - 1;
  if (diagonal > kLast - i) return kLast;  // i is never negative
  return i + diagonal;
}

}  // namespace tt
