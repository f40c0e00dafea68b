// Complex overloads of the functions that operator bodies call; scalar_math.h has the real ones.
//
// Written in terms of real functions, so that loops vectorise.
#pragma once

#include "kernels/common/math/complex.h"
#include "kernels/common/math/scalar_math.h"

namespace tt::math {
inline namespace TT_ISA {

template <typename R>
TT_HOST_DEVICE Complex<R> where(bool c, Complex<R> a, Complex<R> b) {
  return {where(c, a.re, b.re), where(c, a.im, b.im)};
}

template <typename T, typename V>
requires is_complex_v<T> TT_HOST_DEVICE T number(V v) {
  if constexpr (is_complex_v<V>)
    return v;
  else
    return T(number<real_of_t<T>>(v));
}

// Quotient by Smith's method (1962), as in PyTorch: uses the ratio of the divisor's parts, so that squares neither
// overflow nor underflow and an infinite divisor gives 0.
template <typename R>
TT_HOST_DEVICE Complex<R> divide(Complex<R> a, Complex<R> b) {
  const bool wide = abs(b.re) >= abs(b.im), zero = (b.re == R(0)) & (b.im == R(0));
  const R large = where(wide, b.re, b.im), small = where(wide, b.im, b.re);
  const R ratio = small / large, scale = large + small * ratio;
  const R re = where(wide, a.re + a.im * ratio, a.re * ratio + a.im) / scale;
  const R im = where(wide, a.im - a.re * ratio, a.im * ratio - a.re) / scale;
  return {where(zero, a.re / abs(b.re), re), where(zero, a.im / abs(b.re), im)};
}

// ---- Parts ---------------------------------------------------------------------------------

template <typename R>
TT_HOST_DEVICE R real(Complex<R> x) {
  return x.re;
}
template <typename R>
TT_HOST_DEVICE R imag(Complex<R> x) {
  return x.im;
}
template <typename R>
TT_HOST_DEVICE Complex<R> conj(Complex<R> x) {
  return {x.re, -x.im};
}
template <typename R>
TT_HOST_DEVICE R abs(Complex<R> x) {
  return hypot(x.re, x.im);
}
template <typename R>
TT_HOST_DEVICE R angle(Complex<R> x) {
  return atan2(x.im, x.re);
}
// Uses the real parts of both arguments.
template <typename R>
TT_HOST_DEVICE Complex<R> from_parts(Complex<R> real, Complex<R> imaginary) {
  return {real.re, imaginary.re};
}
template <typename R>
TT_HOST_DEVICE Complex<R> from_polar(Complex<R> abs, Complex<R> angle) {
  return {abs.re * cos(angle.re), abs.re * sin(angle.re)};
}
template <typename R>
TT_HOST_DEVICE Complex<R> sgn(Complex<R> x) {
  const R length = abs(x);
  return {where(length == R(0), R(0), x.re / length), where(length == R(0), R(0), x.im / length)};
}
template <typename R>
TT_HOST_DEVICE bool isnan(Complex<R> x) {
  return isnan(x.re) | isnan(x.im);
}
template <typename R>
TT_HOST_DEVICE bool isinf(Complex<R> x) {
  return isinf(x.re) | isinf(x.im);
}
template <typename R>
TT_HOST_DEVICE bool isfinite(Complex<R> x) {
  return isfinite(x.re) & isfinite(x.im);
}

// ---- Powers, exponentials, logarithms ------------------------------------------------------

// e^re (cos(im) + i sin(im)). If re is infinite, im need not be finite; an imaginary part of 0 is preserved.
template <typename R>
TT_HOST_DEVICE Complex<R> exp(Complex<R> x) {
  const R length = exp(x.re);
  const bool lost = !isfinite(x.im), none = lost & (x.re == -kInf<R>), endless = lost & (x.re == kInf<R>);
  const R re = where(none, R(0), where(endless, length, length * cos(x.im)));
  return {re, where(none, R(0), where(x.im == R(0), x.im, length * sin(x.im)))};
}
template <typename R>
TT_HOST_DEVICE Complex<R> exp2(Complex<R> x) {
  const R scale = R(0.6931471805599453094);
  return exp(Complex<R>(scale * x.re, scale * x.im));
}
// The real part is computed as (e^re - 1) cos(im) - 2 sin(im / 2)^2, which does not cancel for small x. Infinite real
// parts and the imaginary part are computed as in exp().
template <typename R>
TT_HOST_DEVICE Complex<R> expm1(Complex<R> x) {
  const R length = exp(x.re), more = expm1(x.re), half = sin(x.im / R(2));
  const bool lost = !isfinite(x.im), none = lost & (x.re == -kInf<R>), endless = lost & (x.re == kInf<R>);
  const R near = where(x.im == R(0), more + R(0), more * cos(x.im) - R(2) * half * half);
  const R re = where(none, R(-1), where(endless, length, near));
  return {re, where(none, R(0), where(x.im == R(0), x.im, length * sin(x.im)))};
}
template <typename R>
TT_HOST_DEVICE Complex<R> log(Complex<R> x) {
  return {log(abs(x)), angle(x)};
}
template <typename R>
TT_HOST_DEVICE Complex<R> log2(Complex<R> x) {
  const R scale = R(1.4426950408889634074);
  return {log2(abs(x)), angle(x) * scale};
}
template <typename R>
TT_HOST_DEVICE Complex<R> log10(Complex<R> x) {
  const R scale = R(0.43429448190325182765);
  return {log10(abs(x)), angle(x) * scale};
}
template <typename R>
TT_HOST_DEVICE Complex<R> log1p(Complex<R> x) {
  // Near zero, computes log1p(|1 + x|^2 - 1) / 2. Elsewhere |1 + x|^2 - 1 would overflow or cancel.
  const R square = x.re * (R(2) + x.re) + x.im * x.im;
  const bool close = (abs(x.re) < R(0.5)) & (abs(x.im) < R(0.5));
  return {where(close, R(0.5) * log1p(square), log(hypot(R(1) + x.re, x.im))), atan2(x.im, R(1) + x.re)};
}

// sqrt and the remaining elementary functions are defined in complex_libm.h or, for targets without a C library, in
// complex_elementary.h. A source file must also include one of the two.
TT_HOST_DEVICE Complex<float> sqrt(Complex<float> x);
TT_HOST_DEVICE Complex<double> sqrt(Complex<double> x);

template <typename R>
TT_HOST_DEVICE Complex<R> rsqrt(Complex<R> x) {
  return divide(Complex<R>(R(1)), sqrt(x));
}
// x^0 is 1 for every x; 0^y is 0 if y has a positive real part.
template <typename R>
TT_HOST_DEVICE Complex<R> pow(Complex<R> x, Complex<R> y) {
  const Complex<R> one(R(1)), zero(R(0));
  const bool none = (x == zero) & (y.re > R(0));
  return where(y == zero, one, where(none, zero, exp(y * log(x))));
}
template <typename R>
TT_HOST_DEVICE Complex<R> sigmoid(Complex<R> x) {
  return divide(Complex<R>(R(1)), Complex<R>(R(1)) + exp(-x));
}
template <typename R>
TT_HOST_DEVICE Complex<R> silu_derivative(Complex<R> x) {
  const Complex<R> s = sigmoid(x), one(R(1));
  return s * (one + x * (one - s));
}

// log(exp(a) + exp(b)), computed relative to the argument with the larger real part.
template <typename R>
TT_HOST_DEVICE Complex<R> logaddexp(Complex<R> a, Complex<R> b) {
  const bool first = a.re >= b.re;
  const Complex<R> high = where(first, a, b), low = where(first, b, a);
  const bool same = isinf(high.re) & (a.re == b.re);  // equal infinities are returned unchanged
  return where(same, high, high + log1p(exp(low - high)));
}

}  // namespace TT_ISA
}  // namespace tt::math
