// sorted_rows: the order of the elements along a dimension.
#pragma once

#include "kernels/cuda/launch/dim_iterator.h"

namespace tt::cuda {

// Unsigned integers that sort as the elements do, stably, one line after the other; as tensors of int32 or int64 hold
// them, of which only the low `bits` may differ.
struct RowKeys {
  Tensor keys;
  int bits;
};
RowKeys line_keys(const Tensor& input, const DimIterator& lines, bool descending);

// Calls f with their type.
template <typename F>
void with_key(const RowKeys& keys, F f) {
  keys.keys.dtype() == DType::kInt32 ? f(std::type_identity<uint32_t>()) : f(std::type_identity<uint64_t>());
}

// 0, 1, ... n - 1.
Tensor numbered(const Queue& queue, int64_t n);

// One line after the other, where each line's elements are, in order: as numbers among all lines' elements
// (DimIterator), so that `number % length` is the place in the line. Stable; NaN is the last, or, descending, the
// first.
Tensor sorted_rows(const Tensor& input, const DimIterator& lines, bool descending);

}  // namespace tt::cuda
