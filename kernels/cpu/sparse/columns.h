// Columns: the columns of a matrix of indices, as things to compare and to sort.
#pragma once

#include <cstdint>

#include "engine/tensor/tensor.h"

namespace tt::cpu {

// A checked copy of the columns of `indices`, (sparse dimensions, entries), in the order of their positions in a tensor
// of the sparse sizes. If that tensor has less than 2^63 elements, each column is one number; else columns are compared
// index by index. Throws Error (RuntimeError) for an index that is out of range, another dtype or other sizes.
class Columns {
 public:
  Columns(const Tensor& indices, SizesView size);

  int64_t count() const { return count_; }
  bool is_sorted_and_distinct() const;
  // Returns the positions (int64) of the columns in sorted order; equal columns keep their order.
  Tensor sorted_order() const;
  // Negative, 0 or positive, as for the columns i of this and j of other, of the same sizes.
  int compare(int64_t i, const Columns& other, int64_t j) const {
    if (keys_) {
      const int64_t a = keys_.data_as<int64_t>()[i], b = other.keys_.data_as<int64_t>()[j];
      return a < b ? -1 : a > b;
    }
    return compare_indices(i, other, j);
  }
  // Writes the column i as column `to` of `out`, which has the dtype of the argument.
  void copy_column(int64_t i, const Tensor& out, int64_t to) const;
  // A matrix for `count` columns, of the dtype and device of the argument.
  Tensor empty_like(int64_t count) const;

 private:
  int compare_indices(int64_t i, const Columns& other, int64_t j) const;

  int64_t dims_, count_;
  int64_t largest_ = 0;  // upper limit of the keys
  DType dtype_;
  Tensor copy_;  // int64
  Tensor keys_;  // int64; undefined if positions do not fit into 64 bits
};

}  // namespace tt::cpu
