// The functions that operator bodies call, for one element: PyTorch's semantics, for float, double, int32_t and
// int64_t.
//
// Everything is inline, and branch-free where possible, so that loops over it vectorise; CUDA compiles the same source.
// On the CPU each instruction set has its own copy, in the namespace TT_ISA. If the linker merged the copies, a machine
// without AVX-512 might run AVX-512 code.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/common/math/exponential.h"
#include "kernels/common/math/vector_math.h"

#ifdef __CUDACC__
#define TT_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define TT_HOST_DEVICE [[gnu::always_inline]] inline
#endif
#ifndef TT_ISA
#define TT_ISA baseline
#endif

namespace tt::math {
inline namespace TT_ISA {

template <typename T>
concept Real = std::is_floating_point_v<T>;
template <typename T>
concept Integer = std::is_integral_v<T>;

template <Real T>
inline constexpr T kPi = static_cast<T>(3.14159265358979323846);
template <Real T>
inline constexpr T kInf = std::numeric_limits<T>::infinity();
template <Real T>
inline constexpr T kNan = std::numeric_limits<T>::quiet_NaN();

// ---- Selection -----------------------------------------------------------------------------

// c ? a : b. Evaluates both sides and selects by bit mask, so that no branch prevents vectorisation. The code generator
// emits every `?:` of a body in this form.
template <typename M, typename A, typename B>
TT_HOST_DEVICE auto where(M c, A a, B b) {
  using T = std::common_type_t<A, B>;
  using Bits = std::conditional_t<sizeof(T) == 8, int64_t, std::conditional_t<sizeof(T) == 4, int32_t, int8_t>>;
  const Bits mask = static_cast<Bits>(-static_cast<Bits>(c != M{}));
  return std::bit_cast<T>(static_cast<Bits>((std::bit_cast<Bits>(static_cast<T>(a)) & mask) |
                                            (std::bit_cast<Bits>(static_cast<T>(b)) & ~mask)));
}

// Converts the result of an operator's body to a number: true to 1, false to 0. (A plain cast from bool to float would
// not vectorise.)
template <typename T, typename V>
TT_HOST_DEVICE T number(V v) {
  if constexpr (std::is_same_v<V, bool>)
    return where(v, T(1), T(0));
  else
    return static_cast<T>(v);
}

template <Real T>
TT_HOST_DEVICE bool isnan(T x) {
  return x != x;
}
template <Integer T>
TT_HOST_DEVICE bool isnan(T) {
  return false;
}
template <Real T>
TT_HOST_DEVICE T abs(T x) {
  return std::fabs(x);
}
template <Integer T>
TT_HOST_DEVICE T abs(T x) {
  return where(x < 0, static_cast<T>(-x), x);
}
template <Real T>
TT_HOST_DEVICE bool isinf(T x) {
  return abs(x) == kInf<T>;
}
template <Integer T>
TT_HOST_DEVICE bool isinf(T) {
  return false;
}
template <Real T>
TT_HOST_DEVICE bool isfinite(T x) {
  return abs(x) < kInf<T>;
}
template <Integer T>
TT_HOST_DEVICE bool isfinite(T) {
  return true;
}

// NaN if either argument is NaN.
template <typename T>
TT_HOST_DEVICE T maximum(T a, T b) {
  return where(isnan(a) | (a > b), a, b);
}
template <typename T>
TT_HOST_DEVICE T minimum(T a, T b) {
  return where(isnan(a) | (a < b), a, b);
}
// If one argument is NaN, returns the other.
template <typename T>
TT_HOST_DEVICE T fmax(T a, T b) {
  return where(isnan(b) | (a > b), a, b);
}
template <typename T>
TT_HOST_DEVICE T fmin(T a, T b) {
  return where(isnan(b) | (a < b), a, b);
}
// If the bounds cross, the upper one is returned, as in PyTorch.
template <typename T>
TT_HOST_DEVICE T clamp(T x, T low, T high) {
  return minimum(maximum(x, low), high);
}
template <Real T>
TT_HOST_DEVICE T nan_to_num(T x, T nan, T posinf, T neginf) {
  return where(isnan(x), nan, where(x == kInf<T>, posinf, where(x == -kInf<T>, neginf, x)));
}
template <Integer T>
TT_HOST_DEVICE T nan_to_num(T x, T, T, T) {
  return x;
}

// ---- Signs and rounding --------------------------------------------------------------------

template <typename T>
TT_HOST_DEVICE T sign(T x) {
  return static_cast<T>(where(isnan(x), T(0), static_cast<T>((x > T(0)) - (x < T(0)))));
}
template <Real T>
TT_HOST_DEVICE bool signbit(T x) {
  return std::copysign(T(1), x) < T(0);
}
template <Integer T>
TT_HOST_DEVICE bool signbit(T x) {
  return x < 0;
}
template <Real T>
TT_HOST_DEVICE T copysign(T x, T y) {
  return std::copysign(x, y);
}
template <Real T>
TT_HOST_DEVICE T floor(T x) {
  return std::floor(x);
}
template <Integer T>
TT_HOST_DEVICE T floor(T x) {
  return x;
}
template <Real T>
TT_HOST_DEVICE T ceil(T x) {
  return std::ceil(x);
}
template <Integer T>
TT_HOST_DEVICE T ceil(T x) {
  return x;
}
template <Real T>
TT_HOST_DEVICE T trunc(T x) {
  return std::trunc(x);
}
template <Integer T>
TT_HOST_DEVICE T trunc(T x) {
  return x;
}
template <Real T>
TT_HOST_DEVICE T rint(T x) {
  return std::rint(x);
}  // half to even
template <Integer T>
TT_HOST_DEVICE T rint(T x) {
  return x;
}
template <Real T>
TT_HOST_DEVICE T frac(T x) {
  return x - std::trunc(x);
}

// ---- Division ------------------------------------------------------------------------------
// Integer division by zero returns 0 here. Backends that can report errors check for zero divisors beforehand.

template <Real T>
TT_HOST_DEVICE T fmod(T a, T b) {
  return std::fmod(a, b);
}
template <Integer T>
TT_HOST_DEVICE T fmod(T a, T b) {
  return b == 0 || (std::is_signed_v<T> && b == T(-1)) ? T(0) : static_cast<T>(a % b);
}
// Converts the remainder of truncating division to that of flooring division, which has the divisor's sign.
template <Real T>
TT_HOST_DEVICE T floored_remainder(T b, T left) {
  return where((left != T(0)) & ((left < T(0)) != (b < T(0))), left + b, left);
}
template <Real T>
TT_HOST_DEVICE T remainder(T a, T b) {
  return floored_remainder(b, std::fmod(a, b));
}
template <Integer T>
TT_HOST_DEVICE T remainder(T a, T b) {
  T r = fmod(a, b);
  return static_cast<T>(r + where((r != 0) & ((r < 0) != (b < 0)), b, T(0)));
}
template <Real T>
TT_HOST_DEVICE T trunc_divide(T a, T b) {
  return std::trunc(a / b);
}
template <Integer T>
TT_HOST_DEVICE T trunc_divide(T a, T b) {
  if (std::is_signed_v<T> && b == T(-1))
    return static_cast<T>(-a);  // the lowest value has no negation: the result wraps instead of trapping
  return b == 0 ? T(0) : static_cast<T>(a / b);
}
// Flooring division as in Python. It is consistent with remainder(), unlike floor(a / b), where a / b is already
// rounded. `left` is fmod(a, b).
template <Real T>
TT_HOST_DEVICE T floored_quotient(T a, T b, T left) {
  const T whole = (a - left) / b;
  const T quotient = where((left != T(0)) & ((left < T(0)) != (b < T(0))), whole - T(1), whole);
  T rounded = std::floor(quotient);
  rounded = where(quotient - rounded > T(0.5), rounded + T(1), rounded);
  const T exact = where(quotient == T(0), std::copysign(T(0), a / b), rounded);
  return where(b == T(0), a / b, exact);
}
template <Real T>
TT_HOST_DEVICE T floor_divide(T a, T b) {
  return floored_quotient(a, b, std::fmod(a, b));
}
template <Integer T>
TT_HOST_DEVICE T floor_divide(T a, T b) {
  T r = fmod(a, b);
  return static_cast<T>(trunc_divide(a, b) - where((r != 0) & ((r < 0) != (b < 0)), T(1), T(0)));
}

// ---- Bits ----------------------------------------------------------------------------------
// A shift by a negative count, or by at least the type's width, shifts all bits out.

template <Integer T>
TT_HOST_DEVICE T shift_left(T a, T n) {
  const bool out = (n < 0) | (n >= static_cast<T>(8 * sizeof(T)));
  return where(out, T(0), static_cast<T>(a << where(out, T(0), n)));
}
template <Integer T>
TT_HOST_DEVICE T shift_right(T a, T n) {
  const T last = static_cast<T>(8 * sizeof(T) - 1);
  return static_cast<T>(a >> where((n < 0) | (n > last), last, n));
}
template <Integer T>
TT_HOST_DEVICE T gcd(T a, T b) {
  a = abs(a);
  b = abs(b);
  while (b != 0) {
    T r = fmod(a, b);  // the lowest value stays negative; fmod() avoids the trap on division by -1
    a = b;
    b = r;
  }
  return a;
}
template <Integer T>
TT_HOST_DEVICE T lcm(T a, T b) {
  T g = gcd(a, b);
  return g == 0 ? T(0) : abs(static_cast<T>(trunc_divide(a, g) * b));
}

// ---- Powers, exponentials, logarithms ------------------------------------------------------

#define TT_LIBM_1(name)                                       \
  TT_HOST_DEVICE float name(float x) { return ::name##f(x); } \
  TT_HOST_DEVICE double name(double x) { return ::name(x); }
#define TT_LIBM_2(name)                                                   \
  TT_HOST_DEVICE float name(float x, float y) { return ::name##f(x, y); } \
  TT_HOST_DEVICE double name(double x, double y) { return ::name(x, y); }
TT_LIBM_1(sqrt)
TT_LIBM_1(cbrt)
TT_LIBM_1(exp2)
TT_LIBM_1(expm1)
TT_LIBM_1(log)
TT_LIBM_1(log2)
TT_LIBM_1(log10)
TT_LIBM_1(log1p)
TT_LIBM_1(sin)
TT_LIBM_1(cos)
TT_LIBM_1(tan)
TT_LIBM_1(asin)
TT_LIBM_1(acos)
TT_LIBM_1(atan)
TT_LIBM_1(sinh)
TT_LIBM_1(cosh)
TT_LIBM_1(tanh)
TT_LIBM_1(asinh)
TT_LIBM_1(acosh)
TT_LIBM_1(atanh)
TT_LIBM_1(erf)
TT_LIBM_1(erfc)
TT_LIBM_1(tgamma)
TT_LIBM_2(atan2)
TT_LIBM_2(hypot)
TT_LIBM_2(nextafter)
#undef TT_LIBM_1
#undef TT_LIBM_2

#ifdef __CUDACC__
TT_HOST_DEVICE float exp(float x) { return ::expf(x); }
#else
TT_HOST_DEVICE float exp(float x) { return exponential(x); }
#endif
TT_HOST_DEVICE double exp(double x) { return ::exp(x); }

TT_HOST_DEVICE float pow(float x, float y) { return ::powf(x, y); }
TT_HOST_DEVICE double pow(double x, double y) { return ::pow(x, y); }
// Wraps around on overflow; a negative exponent truncates 1 / x^|n|, as in PyTorch.
template <Integer T>
TT_HOST_DEVICE T int_pow(T x, T n) {
  if (n < 0) return x == 1 ? T(1) : x == T(-1) ? (n % 2 == 0 ? T(1) : T(-1)) : T(0);
  T result = 1;
  while (n != 0) {
    if (n & 1) result = static_cast<T>(result * x);
    x = static_cast<T>(x * x);
    n = static_cast<T>(n >> 1);
  }
  return result;
}
template <Real T>
TT_HOST_DEVICE T rsqrt(T x) {
  return T(1) / sqrt(x);
}
// log(exp(a) + exp(b)); equal infinities are returned unchanged.
template <Real T>
TT_HOST_DEVICE T logaddexp(T a, T b) {
  T high = maximum(a, b);
  return where(isinf(a) & (a == b), a, high + log1p(exp(-abs(a - b))));
}
template <Real T>
TT_HOST_DEVICE T logaddexp2(T a, T b) {
  constexpr T kInverseLog2 = static_cast<T>(1.4426950408889634074);
  T high = maximum(a, b);
  return where(isinf(a) & (a == b), a, high + log1p(exp2(-abs(a - b))) * kInverseLog2);
}

// ---- Activations ---------------------------------------------------------------------------

template <Real T>
TT_HOST_DEVICE T sigmoid(T x) {
  return T(1) / (T(1) + exp(-x));
}
template <Real T>
TT_HOST_DEVICE T silu_derivative(T x) {
  T s = sigmoid(x);
  return s * (T(1) + x * (T(1) - s));
}
template <Real T>
TT_HOST_DEVICE T gelu_tanh_derivative(T x) {
  constexpr T kScale = static_cast<T>(0.79788456080286535588);  // sqrt(2 / pi)
  constexpr T kCubic = static_cast<T>(0.044715);
  T t = tanh(kScale * (x + kCubic * x * x * x));
  return T(0.5) * (T(1) + t) + T(0.5) * x * (T(1) - t * t) * kScale * (T(1) + T(3) * kCubic * x * x);
}

// ---- Special functions ---------------------------------------------------------------------

// Horner's rule; coefficients start with the highest power.
template <Real T, typename... Rest>
TT_HOST_DEVICE T polynomial(T x, double first, Rest... rest) {
  T value = static_cast<T>(first);
  ((value = value * x + static_cast<T>(rest)), ...);
  return value;
}

// The standard normal distribution function of x, given exp(-x^2 / 2). In float the ratio of the two for negative x is
// a polynomial of 1 / (1 + 0.35 |x|), as in Abramowitz and Stegun (1964), 7.1.26; here a minimax fit for |x| in
// [0, 14.5] by Lawson's algorithm, with a relative error of 3e-8 before rounding. The absolute error is within 3e-7.
template <Real T>
TT_HOST_DEVICE T normal_cdf(T x, T exp_of_square) {
  if constexpr (sizeof(T) == 4) {
    const T u = T(1) / (T(1) + T(0.35) * abs(x));
    const T tail = exp_of_square * u *
                   polynomial(u, -0.02915803, 0.14403161, -0.25584039, 0.15932125, -0.023213394, 0.10555293, 0.11982118,
                              0.13986354, 0.1396213);
    return where(x < T(0), tail, T(1) - tail);
  } else {
    return T(0.5) * (T(1) + erf(x * T(0.70710678118654752440)));
  }
}
// The derivative of x times that function.
template <Real T>
TT_HOST_DEVICE T gelu_derivative(T x, T exp_of_square) {
  return normal_cdf(x, exp_of_square) + x * exp_of_square * T(0.39894228040143267794);
}
// Giles, "Approximating the erfinv function" (GPU Computing Gems, 2011). In float, the approximation is accurate to a
// few units in the last place, and erf is not accurate enough to refine it. In double, two Newton steps reach full
// precision.
template <Real T>
TT_HOST_DEVICE T erfinv(T x) {
  T w = -log((T(1) - x) * (T(1) + x));
  const T central = polynomial(w - T(2.5), 2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06,
                               0.00021858087, -0.00125372503, -0.00417768164, 0.246640727, 1.50140941);
  const T tail = polynomial(sqrt(w) - T(3), -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844,
                            0.00573950773, -0.0076224613, 0.00943887047, 1.00167406, 2.83297682);
  T y = x * where(w < T(5), central, tail);
  constexpr T kSlope = static_cast<T>(0.88622692545275801365);  // sqrt(pi) / 2
  for (int step = 0; step < (sizeof(T) == 8 ? 2 : 0); ++step) y -= (erf(y) - x) * kSlope * exp(y * y);
  return where(abs(x) == T(1), x * kInf<T>, where(abs(x) > T(1), kNan<T>, y));
}

#ifdef __CUDACC__
TT_HOST_DEVICE float lgamma(float x) { return ::lgammaf(x); }
TT_HOST_DEVICE double lgamma(double x) { return ::lgamma(x); }
#else
// libm's lgamma() writes the global signgam; these overloads do not.
TT_HOST_DEVICE float lgamma(float x) {
  int sign;
  return ::lgammaf_r(x, &sign);
}
TT_HOST_DEVICE double lgamma(double x) {
  int sign;
  return ::lgamma_r(x, &sign);
}
#endif

// Uses the recurrence up to 10, then the asymptotic series. Negative arguments are reflected.
template <Real T>
TT_HOST_DEVICE T digamma(T argument) {
  double x = static_cast<double>(argument), result = 0;
  if (x == 0) return static_cast<T>(std::copysign(std::numeric_limits<double>::infinity(), -x));
  if (x < 0) {
    if (x == std::floor(x)) return kNan<T>;
    result = -kPi<double> / std::tan(kPi<double> * (x - std::floor(x)));
    x = 1 - x;
  }
  for (; x < 10; x += 1) result -= 1 / x;
  const double z = 1 / (x * x);
  const double series =
      z * (1.0 / 12 - z * (1.0 / 120 -
                           z * (1.0 / 252 - z * (1.0 / 240 - z * (1.0 / 132 - z * (691.0 / 32760 - z * (1.0 / 12)))))));
  return static_cast<T>(result + std::log(x) - 0.5 / x - series);
}

// The derivative of digamma, computed the same way.
template <Real T>
TT_HOST_DEVICE T trigamma(T argument) {
  double x = static_cast<double>(argument), result = 0, sign = 1;
  if (x <= 0) {
    if (x == std::floor(x)) return static_cast<T>(std::numeric_limits<double>::infinity());
    const double s = std::sin(kPi<double> * (x - std::floor(x)));
    result = kPi<double> * kPi<double> / (s * s);
    sign = -1;
    x = 1 - x;
  }
  double sum = 0;
  for (; x < 10; x += 1) sum += 1 / (x * x);
  const double z = 1 / (x * x);
  const double series =
      z / x *
      (1.0 / 6 -
       z * (1.0 / 30 - z * (1.0 / 42 - z * (1.0 / 30 - z * (5.0 / 66 - z * (691.0 / 2730 - z * (7.0 / 6)))))));
  return static_cast<T>(result + sign * (sum + 1 / x + z / 2 + series));
}

}  // namespace TT_ISA
}  // namespace tt::math
