// Loops for functions that are slow, or not vectorised at all, when called per element. If an operator's body is a
// single call of such a function with the operator's tensors in order, the code generator emits a call of
// loop_of_<function> instead. loop_of_operator_<name> replaces the whole body of an operator's floating types.
//
// The loops in this file return the same bits as scalar_math.h. Results of the loops in special_loops.h and
// gamma_loops.h differ from the scalar functions' by a few units in the last place. Lengths are multiples of kLanes;
// `out` may be one of the inputs.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/common/math/scalar_math.h"
#include "kernels/cpu/iteration/block.h"

namespace tt::cpu::TT_ISA {

template <typename T>
using BitsOf = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;

// Below this limit a truncated quotient is exact in T, and one fused multiply-add gives its exact remainder. Without
// FMA instructions no quotient qualifies.
#ifdef __FMA__
template <typename T>
inline constexpr T kReach = static_cast<T>(int64_t{1} << (std::numeric_limits<T>::digits - 1));
#else
template <typename T>
inline constexpr T kReach = 0;
#endif

// Computes r = fmod(a, b). The truncated rounded quotient is the exact quotient's integer part or one more, so one
// correction of the remainder is enough. Returns false, with r undefined, if a quotient's magnitude is kReach or more.
template <typename T>
bool compute_fmod(int64_t n, const T* a, const T* b, T* __restrict r) {
  BitsOf<T> beyond = 0;
  for (int64_t i = 0; i < n; ++i) {
    const T x = a[i], y = b[i], quotient = x / y;
    const T size = std::fabs(x), step = std::fabs(y);
    T left = std::fma(-std::trunc(quotient), y, x);
    left = math::where((left != 0) & ((left < 0) != (x < 0)), left + std::copysign(step, x), left);
    // For infinite x with finite y, and finite x with y = 0, `left` is NaN already.
    const bool far = (std::fabs(quotient) >= kReach<T>)&(size < math::kInf<T>)&(step > 0) & (size >= step);
    beyond |= math::where(far, BitsOf<T>(1), BitsOf<T>(0));
    r[i] = math::where(size < step, x, std::copysign(left, x));
  }
  return beyond == 0;
}

// out = finish(a, b, fmod(a, b)).
template <typename T, typename Finish>
void loop_of_modulus(int64_t length, const T* const* in, T* out, Finish finish) {
  T left[kBlock];
  for (int64_t at = 0; at < length; at += kBlock) {
    const int64_t n = std::min(kBlock, length - at);
    const T *a = in[0] + at, *b = in[1] + at;
    if (!compute_fmod(n, a, b, left)) {
      for (int64_t i = 0; i < n; ++i) left[i] = std::fmod(a[i], b[i]);
    }
    T* to = out + at;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) to[i] = finish(a[i], b[i], left[i]);
  }
}

template <typename T>
void loop_of_fmod(int64_t length, const T* const* in, T* out) {
  loop_of_modulus(length, in, out, [](T, T, T left) { return left; });
}
template <typename T>
void loop_of_remainder(int64_t length, const T* const* in, T* out) {
  loop_of_modulus(length, in, out, [](T, T b, T left) { return math::floored_remainder(b, left); });
}
template <typename T>
void loop_of_floor_divide(int64_t length, const T* const* in, T* out) {
  loop_of_modulus(length, in, out, [](T a, T b, T left) { return math::floored_quotient(a, b, left); });
}

// Uses that the bit patterns of adjacent numbers, read as integers, differ by one.
template <typename T>
void loop_of_nextafter(int64_t length, const T* const* in, T* out) {
  using Bits = BitsOf<T>;
  const T *from = in[0], *to = in[1];
#pragma GCC ivdep
  for (int64_t i = 0; i < length; ++i) {
    const T x = from[i], y = to[i];
    const Bits step = math::where((x < y) == (x > 0), Bits(1), Bits(-1));
    const T next = std::bit_cast<T>(static_cast<Bits>(std::bit_cast<Bits>(x) + step));
    const T least = std::copysign(std::numeric_limits<T>::denorm_min(), y);
    const T moved = math::where(x == y, y, math::where(x == 0, least, next));
    out[i] = math::where((x != x) | (y != y), x + y, moved);
  }
}

}  // namespace tt::cpu::TT_ISA
