// sorted_rows: the sorted order of elements along a dimension.
#pragma once

#include "kernels/cuda/launch/dim_iterator.h"

namespace tt::cuda {

// Unsigned integers that sort like the elements, stably, line by line. Stored as int32 or int64; only the low `bits`
// may differ.
struct RowKeys {
  Tensor keys;
  int bits;
};
RowKeys line_keys(const Tensor& input, const DimIterator& lines, bool descending);

// Calls f with the type of the keys.
template <typename F>
void with_key(const RowKeys& keys, F f) {
  keys.keys.dtype() == DType::kInt32 ? f(std::type_identity<uint32_t>()) : f(std::type_identity<uint64_t>());
}

// 0, 1, ... n - 1.
Tensor numbered(const Queue& queue, int64_t n);

// Returns, line by line, the sorted order of the elements, as numbers among the elements of all lines (DimIterator):
// `number % length` is the position in the line. Stable. NaN sorts last, or first if descending.
Tensor sorted_rows(const Tensor& input, const DimIterator& lines, bool descending);

}  // namespace tt::cuda
