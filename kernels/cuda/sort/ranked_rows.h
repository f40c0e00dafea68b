// ranked_rows: elements of some rank along a dimension, found without putting all in order.
//
// A group of threads looks at each line alone: for many lines, or short ones.
#pragma once

#include "kernels/cuda/sort/sorted_rows.h"

namespace tt::cuda {

// Of each line the place of the element that sorted_rows() would have at `rank`.
Tensor ranked_rows(const Tensor& input, const DimIterator& lines, int64_t rank, bool descending);

// The places of the first `count` of each line in the order of sorted_rows(), one line after the other. Each is
// compared with each: `count` is small.
Tensor first_of_rows(const Tensor& input, const DimIterator& lines, int64_t count, bool descending);

// One element per row: numbers[l * step + first] is its index in row l, to which a multiple of the row's length may be
// added.
struct OneOfEach {
  Tensor numbers;
  int64_t step, first;
};
// What they are and the places where they are, one after the other.
void take_each(const Tensor& input, const DimIterator& lines, const OneOfEach& which, const Tensor& values,
               const Tensor& indices);

}  // namespace tt::cuda
