// Scalar traits: the functions that algorithms written for both real and complex numbers require.
//
// They complement abs(), conj(), real() and the operators, and cost nothing for real numbers.
#pragma once

#include "kernels/common/math/complex_math.h"

namespace tt::math {
inline namespace TT_ISA {

template <Real T>
TT_HOST_DEVICE T conj(T x) {
  return x;
}
template <Real T>
TT_HOST_DEVICE T real(T x) {
  return x;
}
template <Real T>
TT_HOST_DEVICE T imag(T) {
  return T(0);
}

// Scales both parts by a real number.
template <typename T>
TT_HOST_DEVICE T times(T x, real_of_t<T> by) {
  if constexpr (is_complex_v<T>)
    return {x.re * by, x.im * by};
  else
    return x * by;
}
template <typename T>
TT_HOST_DEVICE T over(T x, real_of_t<T> by) {
  if constexpr (is_complex_v<T>)
    return {x.re / by, x.im / by};
  else
    return x / by;
}

template <typename T>
TT_HOST_DEVICE real_of_t<T> squared_length(T x) {
  if constexpr (is_complex_v<T>)
    return x.re * x.re + x.im * x.im;
  else
    return x * x;
}
// Magnitudes without a square root: for complex numbers sum_of_parts() is at most sqrt(2) abs(), and larger_part() at
// least abs() / sqrt(2).
template <typename T>
TT_HOST_DEVICE real_of_t<T> sum_of_parts(T x) {
  if constexpr (is_complex_v<T>)
    return abs(x.re) + abs(x.im);
  else
    return abs(x);
}
template <typename T>
TT_HOST_DEVICE real_of_t<T> larger_part(T x) {
  if constexpr (is_complex_v<T>)
    return maximum(abs(x.re), abs(x.im));
  else
    return abs(x);
}

}  // namespace TT_ISA
}  // namespace tt::math
