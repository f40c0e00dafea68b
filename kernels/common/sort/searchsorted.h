// Binary search in sorted rows, for searchsorted and unique.
#pragma once

#include "engine/tensor/tensor.h"
#include "kernels/common/iteration/element.h"

namespace tt {

// The order of sort(): NaN after every other value.
template <typename T>
constexpr bool is_less(T a, T b) {
  return a < b || (is_nan(b) && !is_nan(a));
}

// The index at which `value` is inserted into the sorted row of n elements: before elements equal to it, or after them
// if `right`.
template <typename T>
constexpr int64_t insertion_point(const T* row, int64_t n, T value, bool right) {
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

// The number of consecutive values searched in the same row: all of them if `rows` has one dimension, else the length
// of a row of `values`.
inline int64_t values_per_row(const Tensor& rows, const Tensor& values) {
  return rows.dim() == 1 ? values.numel() : values.size(-1);
}

}  // namespace tt
