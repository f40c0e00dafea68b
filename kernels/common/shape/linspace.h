// Evenly spaced numbers, real or complex.
#pragma once

#include <cstdint>

#include "kernels/common/math/scalar_math.h"

namespace tt {

// Counts from both ends, so that rounding is symmetrical and the last element is exactly `end`.
template <typename C>
TT_HOST_DEVICE C linspace_at(C start, C end, int64_t steps, int64_t i) {
  if (steps == 1) return start;
  const C step = (end - start) / C(static_cast<double>(steps - 1));
  return i < steps / 2 ? start + step * C(static_cast<double>(i)) : end - step * C(static_cast<double>(steps - 1 - i));
}

}  // namespace tt
