// sorted_lines: the order of the elements along a dimension.
#pragma once

#include "kernels/cuda/lines.h"

namespace tt::cuda {

// Unsigned integers that sort as the elements do, stably, one line after the other; as tensors of int32 or int64 hold
// them, of which only the low `bits` may differ.
struct LineKeys {
  Tensor keys;
  int bits;
};
LineKeys line_keys(const Tensor& input, const Lines& lines, bool descending);

// One line after the other, where each line's elements are, in order: as numbers among all lines' elements (Lines), so
// that `number % length` is the place in the line. Stable; NaN is the last, or, descending, the first.
Tensor sorted_lines(const Tensor& input, const Lines& lines, bool descending);

}  // namespace tt::cuda
