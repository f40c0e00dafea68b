// Declarations of libm functions that let the compiler call their vector forms (glibc's libmvec, within 4 ulp) in
// vectorised loops. glibc itself declares these only under -ffast-math.
//
// Included by scalar_math.h only. On platforms other than x86-64 with glibc, loops call libm per element.
#pragma once

#include <cmath>

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)

#define TT_VECTOR_1(name)                                            \
  double name(double) noexcept __attribute__((simd("notinbranch"))); \
  float name##f(float) noexcept __attribute__((simd("notinbranch")));
#define TT_VECTOR_2(name)                                                    \
  double name(double, double) noexcept __attribute__((simd("notinbranch"))); \
  float name##f(float, float) noexcept __attribute__((simd("notinbranch")));

extern "C" {
TT_VECTOR_1(exp)
TT_VECTOR_1(exp2)
TT_VECTOR_1(expm1)
TT_VECTOR_1(log)
TT_VECTOR_1(log2)
TT_VECTOR_1(log10)
TT_VECTOR_1(log1p)
TT_VECTOR_1(sin)
TT_VECTOR_1(cos)
TT_VECTOR_1(tan)
TT_VECTOR_1(asin)
TT_VECTOR_1(acos)
TT_VECTOR_1(atan)
TT_VECTOR_1(sinh)
TT_VECTOR_1(cosh)
TT_VECTOR_1(tanh)
TT_VECTOR_1(asinh)
TT_VECTOR_1(acosh)
TT_VECTOR_1(atanh)
TT_VECTOR_1(erf)
TT_VECTOR_1(erfc)
TT_VECTOR_1(cbrt)
TT_VECTOR_2(pow)
TT_VECTOR_2(atan2)
TT_VECTOR_2(hypot)
}

#undef TT_VECTOR_1
#undef TT_VECTOR_2

#endif
