// Functions that operator bodies for half types call: accurate enough for 16-bit results, and fast.
#pragma once

#include "kernels/common/math/scalar_math.h"

namespace tt::math {
inline namespace TT_ISA {

// The standard normal distribution function. The error of its product with x is below 0.52 units in the last place. For
// x <= 0 the result is 2^p(|x|), where p is a minimax polynomial (fitted by Lawson's algorithm) of the function's
// base-2 logarithm for |x| in [0, 14.4]. Errors at |x| > 6, where the result is 0 in float16, have a weight of 1/16.
// For |x| > 14.4, p continues to decrease.
template <Real T>
TT_HOST_DEVICE T half_ndtr(T x) {
  const T tail = exp2(polynomial(abs(x), -1.96819952e-09, 1.44931405e-07, -4.66138726e-06, 8.6754144e-05,
                                 -0.00104811751, 0.00880110929, -0.0543172366, -0.458314701, -1.15122474, -1.00000896));
  return where(x > T(0), T(1) - tail, tail);
}

}  // namespace TT_ISA
}  // namespace tt::math
