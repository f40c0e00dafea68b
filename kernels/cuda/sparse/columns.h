// Columns: the columns of a matrix of indices, as things to compare and to sort.
#pragma once

#include <cstdint>

#include "kernels/cuda/sparse/indices.h"

namespace tt::cuda {

// Pointers to columns, for kernels.
struct ColumnsView {
  const int64_t *indices, *keys;  // indices: (dims, count); keys: null if positions do not fit into 63 bits
  int64_t dims, count;

  // Negative, 0 or positive, as for the columns i of this and j of other, of the same sizes.
  TT_FUNCTION int compare(int64_t i, const ColumnsView& other, int64_t j) const {
    if (keys) return keys[i] < other.keys[j] ? -1 : keys[i] > other.keys[j];
    for (int64_t d = 0; d < dims; ++d) {
      const int64_t a = indices[d * count + i], b = other.indices[d * other.count + j];
      if (a != b) return a < b ? -1 : 1;
    }
    return 0;
  }
  // The number of columns before column j of other. Requires that the columns are sorted.
  TT_FUNCTION int64_t insertion_point(const ColumnsView& other, int64_t j) const {
    int64_t from = 0, to = count;
    while (from < to) {
      const int64_t middle = from + (to - from) / 2;
      compare(middle, other, j) < 0 ? from = middle + 1 : to = middle;
    }
    return from;
  }
  TT_FUNCTION bool has(int64_t i, const ColumnsView& other, int64_t j) const {
    return i < count && compare(i, other, j) == 0;
  }
};

// A copy of the columns of `indices`, (sparse dimensions, entries), in the order of their positions in a tensor of the
// sparse sizes. If that tensor has less than 2^63 elements, each column is one number; else columns are compared index
// by index.
class Columns {
 public:
  // Throws Error (RuntimeError) for another dtype or other sizes. Reports an index that is out of range to `cell`.
  Columns(const Tensor& indices, SizesView size, DeviceErrorCell* cell);
  // From int64 indices, contiguous, that were checked and that no other session writes.
  Columns(Tensor checked, SizesView size);

  int64_t count() const { return indices_.size(1); }
  ColumnsView view() const {
    return {indices_.data_as<int64_t>(), keys_ ? keys_.data_as<int64_t>() : nullptr, indices_.size(0), count()};
  }
  // Returns the positions (int64) of the columns in sorted order; equal columns keep their order.
  Tensor sorted_order() const;
  // Reports an error of the given kind, the cell's second value, unless the columns are sorted and distinct.
  void report_unless_sorted(DeviceErrorCell* cell, int64_t kind) const;
  // Writes column from[i] as column to[i] of `out`, which has the dtype of the argument; null for i.
  void copy_columns(int64_t n, const int64_t* from, const int64_t* to, const Tensor& out) const;
  // A matrix for `count` columns, of the dtype and device of the argument.
  Tensor empty_like(int64_t count) const;

 private:
  void set_keys();

  Sizes size_;
  DType dtype_;
  Tensor indices_;  // int64
  Tensor keys_;     // int64; undefined if positions do not fit into 63 bits
};

// The runs of equal columns in sorted order.
struct Runs {
  Tensor order;   // int64: the column at each place of the order
  Tensor starts;  // int64: the place where each run starts, and the end
  int64_t count = 0;
};
// Sets inverse[i] to the run of column i. Waits for the number of runs.
Runs runs_of(const Columns& columns, const Tensor& inverse);
// One column of each run.
Tensor distinct_columns(const Columns& columns, const Runs& runs);

// out[r] = the sum of the parts `values` of run r, in the order of the entries. `values` is contiguous and has the
// dtype of `out`, or the one in which that dtype is summed.
void sum_runs(const Runs& runs, const Tensor& values, const Tensor& out);

}  // namespace tt::cuda
