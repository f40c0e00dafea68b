// What bincount and searchsorted ask and search, whoever counts.
#pragma once

#include <algorithm>

#include "engine/schema/error.h"
#include "engine/tensor/tensor.h"
#include "kernels/common/iteration/element.h"

namespace tt::tally {

// Throws Error where bincount cannot be.
inline void check_bincount(const Tensor& input, const Tensor& weights, int64_t minlength) {
  check(input.dim() == 1 && category(input.dtype()) == Category::kInteger,
        "bincount only supports 1-d non-negative integral inputs, got ", describe(input.meta()));
  check(!weights || weights.sizes() == input.sizes(), "weights should be 1-d and have the same length as input, got ",
        weights ? to_string(weights.sizes()) : "", " and ", to_string(input.sizes()));
  check(minlength >= 0, "minlength should be >= 0, got ", minlength);
}

// How many bins hold values up to `largest` (-1: there are none). Throws Error where no machine has as many, or
// `smallest` is negative.
inline int64_t bins(int64_t smallest, int64_t largest, int64_t minlength) {
  constexpr int64_t kMost = int64_t{1} << 48;
  check(smallest >= 0, "bincount only supports 1-d non-negative integral inputs, got ", smallest);
  check(largest < kMost && minlength <= kMost, "too many bins, got a value of ", largest, " and minlength ", minlength);
  return std::max(largest + 1, minlength);
}

// The type that weights are summed in, or, undefined, elements are counted in.
inline DType bin_type(const Tensor& weights) {
  return !weights ? DType::kInt64 : weights.dtype() == DType::kFloat32 ? DType::kFloat32 : DType::kFloat64;
}

// As sort() orders: NaN after everything.
template <typename T>
constexpr bool is_less(T a, T b) {
  return a < b || (is_nan(b) && !is_nan(a));
}

// Where `value` goes into the sorted row: before its equals, or after them.
template <typename T>
constexpr int64_t insertion(const T* row, int64_t n, T value, bool right) {
  int64_t from = 0, to = n;
  while (from < to) {
    const int64_t middle = from + (to - from) / 2;
    const bool before = right ? !is_less(value, row[middle]) : is_less(row[middle], value);
    if (before) {
      from = middle + 1;
    } else {
      to = middle;
    }
  }
  return from;
}

}  // namespace tt::tally
