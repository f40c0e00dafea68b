// largest_part: the magnitude by which a decomposition scales its matrix.
#pragma once

#include "kernels/common/math/scalar_traits.h"
#include "kernels/cuda/launch/launch.h"

namespace tt::cuda {

// Returns the largest magnitude of the real and imaginary parts of n elements, or infinity if an element is not finite.
// All threads of the group must call this.
template <typename T>
TT_DEVICE real_of_t<T> largest_part(Group& group, const T* x, int64_t n) {
  using R = real_of_t<T>;
  R most = 0;
  for (int64_t e = group.rank(); e < n; e += group.size()) {
    const R size = math::isfinite(x[e]) ? math::larger_part(x[e]) : math::kInf<R>;
    most = size > most ? size : most;
  }
  return group.reduce(most, [](R a, R b) { return a > b ? a : b; });
}

}  // namespace tt::cuda
