// DimIterator: the one-dimensional slices ("lines") of a tensor along one dimension, numbered in row-major order of the
// other dimensions.
//
// Created on the host and captured by value.
#pragma once

#include "engine/schema/rules/shape_rules.h"
#include "kernels/cuda/launch/layout.h"

namespace tt::cuda {

class DimIterator {
 public:
  DimIterator(const Tensor& t, int64_t dim) : DimIterator(t, shape_rules::wrap_dim(dim, t.dim()), Sizes(), Sizes()) {}

  int64_t count() const { return count_; }
  TT_FUNCTION int64_t length() const { return length_; }
  TT_FUNCTION int64_t stride() const { return stride_; }
  // Offset, in elements, of the first element of a line.
  TT_FUNCTION int64_t start(int64_t line) const { return starts_.offsets(line).at[0]; }
  // Offset, in elements, of element `i` in the order of all lines: element i % length() of line i / length().
  TT_FUNCTION int64_t offset(int64_t i) const { return start(i / length_) + i % length_ * stride_; }
  // Whether adjacent elements of a line are further apart than adjacent lines.
  bool is_interleaved() const { return interleaved_; }

 private:
  DimIterator(const Tensor& t, int64_t dim, Sizes sizes, Sizes strides) : starts_(around(t, dim, &sizes, &strides)) {
    if (t.dim() > 0) {
      length_ = t.size(dim);
      stride_ = t.stride(dim);
    }
    for (size_t d = 0; d < sizes.size(); ++d) {
      count_ *= sizes[d];
      interleaved_ |= sizes[d] > 1 && strides[d] < stride_;
    }
  }
  static Layout<1> around(const Tensor& t, int64_t dim, Sizes* sizes, Sizes* strides) {
    for (int64_t d = 0; d < t.dim(); ++d) {
      if (d == dim) continue;
      sizes->push_back(t.size(d));
      strides->push_back(t.stride(d));
    }
    return Layout<1>(*sizes, {*strides});
  }

  Layout<1> starts_;
  int64_t count_ = 1, length_ = 1, stride_ = 1;
  bool interleaved_ = false;
};

}  // namespace tt::cuda
