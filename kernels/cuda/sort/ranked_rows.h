// ranked_rows: finds elements of a given rank along a dimension without sorting.
//
// One group of threads processes each line. Efficient for many lines, or for short lines.
#pragma once

#include "kernels/cuda/sort/sorted_rows.h"

namespace tt::cuda {

// Returns, for each line, the position of the element that sorted_rows() would put at `rank`.
Tensor ranked_rows(const Tensor& input, const DimIterator& lines, int64_t rank, bool descending);

// Returns the positions of the first `count` elements of each line in the order of sorted_rows(), line by line. Takes
// count^2 comparisons per line, so `count` must be small.
Tensor first_of_rows(const Tensor& input, const DimIterator& lines, int64_t count, bool descending);

// Selects one element per line: its position in line l is numbers[l * step + first] modulo the line's length.
struct RowSelection {
  Tensor numbers;
  int64_t step, first;
};
// Writes the selected values and their positions, line by line.
void gather_selected(const Tensor& input, const DimIterator& lines, const RowSelection& which, const Tensor& values,
                     const Tensor& indices);

}  // namespace tt::cuda
