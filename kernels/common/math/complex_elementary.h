// Complex elementary functions in terms of real ones, for targets without a C library (see complex_libm.h).
//
// Kahan's formulas ("Branch cuts for complex elementary functions", 1987): correct on both sides of each branch cut,
// selected by the sign of zero. If a part is infinite or NaN, the result is the formula's, which may differ from the C
// standard's.
#pragma once

#include "kernels/common/math/complex_math.h"

namespace tt::math {
inline namespace TT_ISA {

// ---- Roots ---------------------------------------------------------------------------------

// Computes the larger part of the result as sqrt((|re| + |x|) / 2), and the other part from it. The input is first
// scaled down if it is so large that the sum would overflow, or scaled up if it is so small that digits would be
// lost.
template <typename R>
TT_HOST_DEVICE Complex<R> root(Complex<R> x) {
  if (isinf(x.im)) return {kInf<R>, x.im};
  if (x.re == R(0) && x.im == R(0)) return {R(0), x.im};
  const R largest = std::numeric_limits<R>::max() / R(4), smallest = std::numeric_limits<R>::min() * R(4);
  const R size = fmax(abs(x.re), abs(x.im));
  const R enlarge = R(4) / std::numeric_limits<R>::epsilon() / std::numeric_limits<R>::epsilon();  // an even power of 2
  const R scale = size > largest ? R(0.0625) : size < smallest ? enlarge : R(1);
  const R back = size > largest ? R(4) : size < smallest ? R(0.5) * std::numeric_limits<R>::epsilon() : R(1);
  const R re = x.re * scale, im = x.im * scale, length = hypot(re, im);
  if (re >= R(0)) {
    const R half = sqrt((re + length) * R(0.5));
    return {half * back, isinf(re) ? copysign(R(0), im) : im / (R(2) * half) * back};
  }
  const R half = sqrt((length - re) * R(0.5));
  return {isinf(re) ? R(0) : abs(im) / (R(2) * half) * back, copysign(half, im) * back};
}
TT_HOST_DEVICE Complex<float> sqrt(Complex<float> x) { return root(x); }
TT_HOST_DEVICE Complex<double> sqrt(Complex<double> x) { return root(x); }

// ---- Hyperbolic functions, and trigonometric ones as hyperbolic functions of i x --------------

// times_i() returns i x, divided_by_i() returns x / i.
template <typename R>
TT_HOST_DEVICE Complex<R> times_i(Complex<R> x) {
  return {-x.im, x.re};
}
template <typename R>
TT_HOST_DEVICE Complex<R> divided_by_i(Complex<R> x) {
  return {x.im, -x.re};
}

// A real x gives a real result, also for infinite x.
template <typename R>
TT_HOST_DEVICE Complex<R> sinh(Complex<R> x) {
  if (x.im == R(0)) return {sinh(x.re), x.im};
  return {x.re == R(0) && !isfinite(x.im) ? x.re : sinh(x.re) * cos(x.im), cosh(x.re) * sin(x.im)};
}
template <typename R>
TT_HOST_DEVICE Complex<R> cosh(Complex<R> x) {
  if (x.im == R(0)) return {cosh(x.re), copysign(R(1), x.re) * x.im};
  return {cosh(x.re) * cos(x.im), x.re == R(0) && !isfinite(x.im) ? x.re : sinh(x.re) * sin(x.im)};
}
template <typename R>
TT_HOST_DEVICE Complex<R> tanh(Complex<R> x) {
  const R limit = sizeof(R) == 4 ? R(11) : R(22);  // beyond this limit the real part rounds to 1
  if (abs(x.re) > limit) {
    const R side = isfinite(x.im) ? R(4) * sin(x.im) * cos(x.im) * exp(R(-2) * abs(x.re)) : R(0);
    return {copysign(R(1), x.re), side == R(0) ? copysign(R(0), x.im) : side};
  }
  if (x.re == R(0)) return {x.re, tan(x.im)};
  const R t = tan(x.im), slope = R(1) + t * t, s = sinh(x.re), length = sqrt(R(1) + s * s);
  if (isinf(t)) return {length / s, R(1) / t};
  const R scale = R(1) + slope * s * s;
  return {slope * length * s / scale, t / scale};
}
template <typename R>
TT_HOST_DEVICE Complex<R> sin(Complex<R> x) {
  return divided_by_i(sinh(times_i(x)));
}
template <typename R>
TT_HOST_DEVICE Complex<R> cos(Complex<R> x) {
  return cosh(times_i(x));
}
template <typename R>
TT_HOST_DEVICE Complex<R> tan(Complex<R> x) {
  return divided_by_i(tanh(times_i(x)));
}

// ---- Inverse functions ----------------------------------------------------------------------

// 1 - x and 1 + x. The sign of a zero imaginary part is preserved (negated in 1 - x), because it selects the side of a
// branch cut.
template <typename R>
TT_HOST_DEVICE Complex<R> one_minus(Complex<R> x) {
  return {R(1) - x.re, -x.im};
}
template <typename R>
TT_HOST_DEVICE Complex<R> one_plus(Complex<R> x) {
  return {R(1) + x.re, x.im};
}
// imag(conj(a) b) and real(a b).
template <typename R>
TT_HOST_DEVICE R imag_conj_product(Complex<R> a, Complex<R> b) {
  return a.re * b.im - a.im * b.re;
}
template <typename R>
TT_HOST_DEVICE R real_product(Complex<R> a, Complex<R> b) {
  return a.re * b.re - a.im * b.im;
}

template <typename R>
TT_HOST_DEVICE Complex<R> asin(Complex<R> x) {
  const Complex<R> less = sqrt(one_minus(x)), more = sqrt(one_plus(x));
  return {atan2(x.re, real_product(less, more)), asinh(imag_conj_product(less, more))};
}
template <typename R>
TT_HOST_DEVICE Complex<R> acos(Complex<R> x) {
  const Complex<R> less = sqrt(one_minus(x)), more = sqrt(one_plus(x));
  return {R(2) * atan2(less.re, more.re), asinh(imag_conj_product(more, less))};
}
template <typename R>
TT_HOST_DEVICE Complex<R> acosh(Complex<R> x) {
  const Complex<R> less = sqrt(Complex<R>(x.re - R(1), x.im)), more = sqrt(one_plus(x));
  return {asinh(less.re * more.re + less.im * more.im), R(2) * atan2(less.im, more.re)};
}
template <typename R>
TT_HOST_DEVICE Complex<R> asinh(Complex<R> x) {
  return divided_by_i(asin(times_i(x)));
}
// Computed in the right half plane, because atanh is odd. For large |x| the result is 1 / x plus or minus i pi / 2.
template <typename R>
TT_HOST_DEVICE Complex<R> atanh(Complex<R> x) {
  const R turn = copysign(R(1), x.re), re = abs(x.re), im = turn * x.im;
  const R far = sqrt(std::numeric_limits<R>::max()) / R(4), size = fmax(re, abs(im));
  if (size > far) {
    const R a = re / size, b = im / size;
    return {turn * (a / (a * a + b * b) / size), copysign(kPi<R> / R(2), x.im)};
  }
  const R rest = R(1) - re, square = rest * rest + im * im;
  const R length = R(0.25) * log1p(R(4) * re / square);
  const R angle = R(0.5) * atan2(R(2) * im, rest * (R(1) + re) - im * im);
  return {turn * length, turn * angle};
}
template <typename R>
TT_HOST_DEVICE Complex<R> atan(Complex<R> x) {
  return divided_by_i(atanh(times_i(x)));
}

}  // namespace TT_ISA
}  // namespace tt::math
