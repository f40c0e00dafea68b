// Layout<K>: K operands over one index space, for a kernel that gets the position in it as one number.
//
// Made on the host, captured by value.
#pragma once

#include <limits>

#include "engine/schema/error.h"
#include "engine/tensor/tensor.h"
#include "kernels/common/iteration/dims.h"
#include "kernels/cuda/launch/divider.h"
#include "kernels/cuda/launch/launch.h"

namespace tt::cuda {

template <int K>
struct Offsets {
  int64_t at[K];
};

template <int K>
class Layout {
 public:
  // Most tensors have few dimensions once neighbours are merged; those with more are made contiguous first.
  static constexpr int kMost = 12;

  // Throws Error where more than kMost dimensions are left.
  Layout(SizesView sizes, const std::array<SizesView, K>& strides) {
    const auto dims = merged_dims<K>(sizes, strides);
    check_as(ErrorKind::kNotImplemented, dims.size() <= kMost, "tensors that lie in more than ", kMost,
             " dimensions are not implemented on CUDA");
    count_ = static_cast<int>(dims.size());
    int64_t numel = 1;
    for (int d = 0; d < count_; ++d) numel *= dims[d].size;
    is_small_ = numel > 0 && numel <= std::numeric_limits<int32_t>::max();
    for (int d = 0; d < count_; ++d) {
      sizes_[d] = dims[d].size;
      if (is_small_) dividers_[d] = Divider(static_cast<uint32_t>(dims[d].size));
      for (int k = 0; k < K; ++k) strides_[k][d] = dims[d].strides[k];
    }
  }

  // Where element `i` (in row-major order) of each operand lies, in elements.
  TT_FUNCTION Offsets<K> offsets(int64_t i) const {
    Offsets<K> result{};
    if (is_small_) {
      auto left = static_cast<uint32_t>(i);
      TT_ROLLED
      for (int d = count_ - 1; d >= 0; --d) {
        const int64_t index = d == 0 ? left : dividers_[d].split(left);
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
  // The innermost dimension; 1 and 0 where there is none.
  int64_t inner_size() const { return count_ == 0 ? 1 : sizes_[count_ - 1]; }
  int64_t inner_stride(int operand) const { return count_ == 0 ? 0 : strides_[operand][count_ - 1]; }
  int dims() const { return count_; }
  // Whether each operand is walked one by one.
  bool is_linear() const {
    bool linear = count_ <= 1;
    for (int k = 0; linear && count_ == 1 && k < K; ++k) linear = strides_[k][0] == 1;
    return linear;
  }

 private:
  int count_;
  bool is_small_;
  int64_t sizes_[kMost] = {};  // zeros beyond count_, so that equal layouts are equal bytes (kernel_launch.h)
  int64_t strides_[K][kMost] = {};
  Divider dividers_[kMost];  // by sizes, where there are few elements
};

}  // namespace tt::cuda
