// The C library's complex elementary functions, including their special values.
#pragma once

#include "kernels/common/math/complex_math.h"

namespace tt::math {
inline namespace TT_ISA {

#define TT_LIBM_C(name)                                    \
  TT_HOST_DEVICE Complex<float> name(Complex<float> x) {   \
    float _Complex y;                                      \
    __real__ y = x.re;                                     \
    __imag__ y = x.im;                                     \
    y = __builtin_c##name##f(y);                           \
    return {__real__ y, __imag__ y};                       \
  }                                                        \
  TT_HOST_DEVICE Complex<double> name(Complex<double> x) { \
    double _Complex y;                                     \
    __real__ y = x.re;                                     \
    __imag__ y = x.im;                                     \
    y = __builtin_c##name(y);                              \
    return {__real__ y, __imag__ y};                       \
  }
TT_LIBM_C(sqrt)
TT_LIBM_C(sin)
TT_LIBM_C(cos)
TT_LIBM_C(tan)
TT_LIBM_C(asin)
TT_LIBM_C(acos)
TT_LIBM_C(atan)
TT_LIBM_C(sinh)
TT_LIBM_C(cosh)
TT_LIBM_C(tanh)
TT_LIBM_C(asinh)
TT_LIBM_C(acosh)
TT_LIBM_C(atanh)
#undef TT_LIBM_C

}  // namespace TT_ISA
}  // namespace tt::math
