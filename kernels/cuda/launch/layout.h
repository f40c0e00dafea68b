// Layout<K>: maps the linear index of an element to the element's offsets in K operands of the same sizes.
//
// Created on the host and captured by value.
#pragma once

#include <limits>

#include "engine/schema/error.h"
#include "engine/tensor/tensor.h"
#include "kernels/common/iteration/dims.h"
#include "kernels/cuda/launch/fast_divmod.h"
#include "kernels/cuda/launch/launch.h"

namespace tt::cuda {

template <int K>
struct Offsets {
  int64_t at[K];
};

template <int K>
class Layout {
 public:
  // Most tensors have few dimensions after adjacent dimensions are merged. Callers must make other tensors contiguous.
  static constexpr int kMaxDims = 12;

  // Throws Error if more than kMaxDims dimensions remain.
  Layout(SizesView sizes, const std::array<SizesView, K>& strides) {
    const auto dims = merged_dims<K>(sizes, strides);
    check(ErrorKind::kNotImplemented, dims.size() <= kMaxDims, "tensors with more than ", kMaxDims,
          " dimensions that cannot be merged are not implemented on CUDA");
    count_ = static_cast<int>(dims.size());
    int64_t numel = 1;
    for (int d = 0; d < count_; ++d) numel *= dims[d].size;
    is_small_ = numel > 0 && numel <= std::numeric_limits<int32_t>::max();
    for (int d = 0; d < count_; ++d) {
      sizes_[d] = dims[d].size;
      if (is_small_) dividers_[d] = FastDivmod(static_cast<uint32_t>(dims[d].size));
      for (int k = 0; k < K; ++k) strides_[k][d] = dims[d].strides[k];
    }
  }

  // Returns the offset of element `i` (in row-major order) in each operand, in elements.
  TT_FUNCTION Offsets<K> offsets(int64_t i) const {
    Offsets<K> result{};
    if (is_small_) {
      auto left = static_cast<uint32_t>(i);
      TT_ROLLED
      for (int d = count_ - 1; d >= 0; --d) {
        const int64_t index = d == 0 ? left : dividers_[d].divmod(left);
        for (int k = 0; k < K; ++k) result.at[k] += index * strides_[k][d];
      }
      return result;
    }
    TT_ROLLED
    for (int d = count_ - 1; d >= 0; --d) {
      const int64_t index = d == 0 ? i : i % sizes_[d];
      if (d > 0) i /= sizes_[d];
      for (int k = 0; k < K; ++k) result.at[k] += index * strides_[k][d];
    }
    return result;
  }
  // Size and stride of the innermost dimension; 1 and 0 if there is none.
  int64_t inner_size() const { return count_ == 0 ? 1 : sizes_[count_ - 1]; }
  int64_t inner_stride(int operand) const { return count_ == 0 ? 0 : strides_[operand][count_ - 1]; }
  int dims() const { return count_; }
  // Whether every operand is contiguous: at most one merged dimension, of stride 1.
  bool is_linear() const {
    bool linear = count_ <= 1;
    for (int k = 0; linear && count_ == 1 && k < K; ++k) linear = strides_[k][0] == 1;
    return linear;
  }

 private:
  int count_;
  bool is_small_;
  int64_t sizes_[kMaxDims] = {};  // zeros beyond count_, so that equal layouts have equal bytes (kernel_launch.h)
  int64_t strides_[K][kMaxDims] = {};
  FastDivmod dividers_[kMaxDims];  // division by sizes_; set only if is_small_
};

}  // namespace tt::cuda
