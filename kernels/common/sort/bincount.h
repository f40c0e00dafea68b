// Argument checks and sizes of bincount.
#pragma once

#include <algorithm>

#include "engine/schema/error.h"
#include "engine/tensor/tensor.h"

namespace tt {

// Throws Error (RuntimeError) if bincount does not accept the arguments.
inline void check_bincount(const Tensor& input, const Tensor& weights, int64_t minlength) {
  check(input.dim() == 1 && category(input.dtype()) == Category::kInteger,
        "bincount only supports 1-d non-negative integral inputs, got ", describe(input.meta()));
  check(!weights || weights.sizes() == input.sizes(), "weights should be 1-d and have the same length as input, got ",
        weights ? to_string(weights.sizes()) : "", " and ", to_string(input.sizes()));
  check(minlength >= 0, "minlength should be >= 0, got ", minlength);
}

// The number of bins for values of [smallest, largest]; largest is -1 if there are no values. Throws Error
// (RuntimeError) if `smallest` is negative or there would be more than 2^48 bins.
inline int64_t bin_count(int64_t smallest, int64_t largest, int64_t minlength) {
  constexpr int64_t kMaxBins = int64_t{1} << 48;
  check(smallest >= 0, "bincount only supports 1-d non-negative integral inputs, got ", smallest);
  check(largest < kMaxBins && minlength <= kMaxBins, "too many bins, got a value of ", largest, " and minlength ",
        minlength);
  return std::max(largest + 1, minlength);
}

// The dtype of the bins: int64 if `weights` is undefined, float32 for float32 weights, else float64.
inline DType bin_dtype(const Tensor& weights) {
  return !weights ? DType::kInt64 : weights.dtype() == DType::kFloat32 ? DType::kFloat32 : DType::kFloat64;
}

}  // namespace tt
