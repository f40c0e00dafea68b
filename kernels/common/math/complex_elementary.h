// The elementary functions of complex numbers where there is no C library (complex_libm.h): of real functions.
//
// Kahan's formulas ("Branch cuts for complex elementary functions", 1987): right on both sides of every cut, by the
// sign of a zero. Infinite and NaN parts give what they give in the formulas, not always what the C standard lists.
#pragma once

#include "kernels/common/math/complex_math.h"

namespace tt::math {
inline namespace TT_ISA {

// ---- Roots ---------------------------------------------------------------------------------

// Of the larger part's half sum with the length; a quarter of what is so large that the sum would overflow, and many
// times what is so small that digits would be lost.
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

// ---- Hyperbolic functions, and the circular ones, which are those of i x ---------------------

// i x, and x / i.
template <typename R>
TT_HOST_DEVICE Complex<R> turned_up(Complex<R> x) {
  return {-x.im, x.re};
}
template <typename R>
TT_HOST_DEVICE Complex<R> turned_down(Complex<R> x) {
  return {x.im, -x.re};
}

// A real x stays real, infinite ones too.
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
  const R limit = sizeof(R) == 4 ? R(11) : R(22);  // beyond it the real part is 1
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
  return turned_down(sinh(turned_up(x)));
}
template <typename R>
TT_HOST_DEVICE Complex<R> cos(Complex<R> x) {
  return cosh(turned_up(x));
}
template <typename R>
TT_HOST_DEVICE Complex<R> tan(Complex<R> x) {
  return turned_down(tanh(turned_up(x)));
}

// ---- Their inverses ------------------------------------------------------------------------

// 1 - x and 1 + x, whose imaginary parts keep the sign of a zero.
template <typename R>
TT_HOST_DEVICE Complex<R> one_less(Complex<R> x) {
  return {R(1) - x.re, -x.im};
}
template <typename R>
TT_HOST_DEVICE Complex<R> one_more(Complex<R> x) {
  return {R(1) + x.re, x.im};
}
// The parts of a product; conj(a) b has the imaginary part that is asked for most.
template <typename R>
TT_HOST_DEVICE R imag_between(Complex<R> a, Complex<R> b) {
  return a.re * b.im - a.im * b.re;
}
template <typename R>
TT_HOST_DEVICE R real_together(Complex<R> a, Complex<R> b) {
  return a.re * b.re - a.im * b.im;
}

template <typename R>
TT_HOST_DEVICE Complex<R> asin(Complex<R> x) {
  const Complex<R> less = sqrt(one_less(x)), more = sqrt(one_more(x));
  return {atan2(x.re, real_together(less, more)), asinh(imag_between(less, more))};
}
template <typename R>
TT_HOST_DEVICE Complex<R> acos(Complex<R> x) {
  const Complex<R> less = sqrt(one_less(x)), more = sqrt(one_more(x));
  return {R(2) * atan2(less.re, more.re), asinh(imag_between(more, less))};
}
template <typename R>
TT_HOST_DEVICE Complex<R> acosh(Complex<R> x) {
  const Complex<R> less = sqrt(Complex<R>(x.re - R(1), x.im)), more = sqrt(one_more(x));
  return {asinh(less.re * more.re + less.im * more.im), R(2) * atan2(less.im, more.re)};
}
template <typename R>
TT_HOST_DEVICE Complex<R> asinh(Complex<R> x) {
  return turned_down(asin(turned_up(x)));
}
// In the right half plane, and turned back from there. Far out it is 1 / x beside a quarter of a turn.
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
  return turned_down(atanh(turned_up(x)));
}

}  // namespace TT_ISA
}  // namespace tt::math
