// Reductions to an extremum and its position: max and min along a dimension, argmax and argmin.
//
// The first of equal elements is the result. A NaN is more extreme than any number, and the first NaN is the result.
#pragma once

#include <cstdint>
#include <optional>

#include "kernels/common/reduce/reduce_plan.h"

namespace tt {

template <typename T>
struct ExtremumTotal {
  T value;
  int64_t position;  // index among the reduced elements in row-major order; -1 before the first element
};

// The plan of a reduction over `dim`, or over all dimensions if `dim` is empty.
inline ReducePlan arg_reduce_plan(const Tensor& input, const std::optional<int64_t>& dim) {
  return ReducePlan(input, dim ? absl::MakeConstSpan(&*dim, 1) : absl::Span<const int64_t>(), Order::kLogical);
}

}  // namespace tt
