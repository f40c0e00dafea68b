// RunningNorm: batch normalisation with running statistics, as one center, scale and shift per channel.
#pragma once

#include <cmath>

#include "engine/tensor/tensor.h"
#include "kernels/cpu/iteration/contiguous.h"
#include "kernels/cpu/loops/epilogue_loops.h"

namespace tt::cpu {

// T is float or double. Requires one element per channel in each tensor; weight and bias may be undefined.
template <typename T>
class RunningNorm {
 public:
  RunningNorm(const Tensor& mean, const Tensor& var, const Tensor& weight, const Tensor& bias, double eps, DType dtype)
      : channels_(mean.numel()), memory_(empty(Sizes{3, mean.numel()}, dtype, Device{})) {
    const Tensor m = contiguous_as(mean, dtype), v = contiguous_as(var, dtype), w = contiguous_as(weight, dtype),
                 b = contiguous_as(bias, dtype);
    T *centers = memory_.data_as<T>(), *scales = centers + channels_, *shifts = scales + channels_;
    for (int64_t c = 0; c < channels_; ++c) {
      const double rstd = 1 / std::sqrt(static_cast<double>(v.data_as<T>()[c]) + eps);
      centers[c] = m.data_as<T>()[c];
      scales[c] = static_cast<T>(rstd * (w ? static_cast<double>(w.data_as<T>()[c]) : 1.0));
      shifts[c] = b ? b.data_as<T>()[c] : T(0);
    }
  }

  ChannelNorm<T> channels() const {
    const T* centers = memory_.data_as<T>();
    return {centers, centers + channels_, centers + 2 * channels_};
  }

 private:
  int64_t channels_;
  Tensor memory_;
};

}  // namespace tt::cpu
