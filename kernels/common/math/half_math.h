// The functions that operators' bodies for half call: as exact as results of 16 bits are, and short.
#pragma once

#include "kernels/common/math/scalar_math.h"

namespace tt::math {
inline namespace TT_ISA {

// The normal distribution's function; within 0.52 of the last place of its product with x. Left of zero it is 2^p(|x|):
// p is the polynomial nearest to the logarithm on [0, 14.4] (the least greatest error, by Lawson's weights; beyond 6,
// where nothing of it is left in float16, a sixteenth of the error counts), and falls on from there.
template <Real T>
TT_HOST_DEVICE T half_ndtr(T x) {
  const T tail = exp2(polynomial(abs(x), -1.96819952e-09, 1.44931405e-07, -4.66138726e-06, 8.6754144e-05,
                                 -0.00104811751, 0.00880110929, -0.0543172366, -0.458314701, -1.15122474, -1.00000896));
  return where(x > T(0), T(1) - tail, tail);
}

}  // namespace TT_ISA
}  // namespace tt::math
