// sorted_rows: computes the sorted order of the elements of each row along a dimension.
#pragma once

#include "kernels/cuda/launch/dim_iterator.h"

namespace tt::cuda {

// Sort keys: one unsigned integer per element, row by row, in the same order as the elements. `keys` stores them as
// int32 or int64. Only the low `bits` bits of the keys may differ.
struct RowKeys {
  Tensor keys;
  int bits;
};
RowKeys row_keys(const Tensor& input, const DimIterator& rows, bool descending);

// Calls f with the type of the keys.
template <typename F>
void with_key(const RowKeys& keys, F f) {
  keys.keys.dtype() == DType::kInt32 ? f(std::type_identity<uint32_t>()) : f(std::type_identity<uint64_t>());
}

// Returns the int64 tensor 0, 1, ... n - 1.
Tensor iota(const Queue& queue, int64_t n);

// Returns the elements of each row in sorted order, row by row. An element is represented by its number among the
// elements of all rows (DimIterator::offset()); number % length is its position in the row. Stable. NaN sorts last,
// or first if `descending`.
Tensor sorted_rows(const Tensor& input, const DimIterator& rows, bool descending);

}  // namespace tt::cuda
