// Vectorised Bessel functions, computed in double with both sides of every condition; libm computes them only element
// by element.
//
// Uses Chebyshev series as in kernels/common/math/special_math.h, fitted to values exact to 40 digits. Near zeros other
// than the first, results are accurate to a few units in the last place of the amplitude, not of the value.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/common/math/special_math.h"
#include "kernels/cpu/isa/series.h"

namespace tt::cpu::TT_ISA {

using math::where;

// Amplitude and phase of the Bessel functions of order 0 or 1 for x > 5. With w = 5 / x:
//   J(x) = sqrt(2 / (pi x)) (p cos(phase) - w q sin(phase))
//   Y(x) = sqrt(2 / (pi x)) (p sin(phase) + w q cos(phase))
struct AmplitudeAndPhase {
  double cosine, sine;  // cosine and sine of the phase, times sqrt(2)
  double p, wq;
  double amplitude;  // sqrt(1 / (pi x))

  TT_HOST_DEVICE double j() const { return times_amplitude(p * cosine - wq * sine); }
  TT_HOST_DEVICE double y() const { return times_amplitude(p * sine + wq * cosine); }
  // Returns the limit 0 at infinity, where the phase is undefined.
  TT_HOST_DEVICE double times_amplitude(double wave) const { return where(amplitude == 0, 0.0, amplitude * wave); }
};
// cos(x), written so that the compiler does not merge it with sin(x) into sincos(), which has no vector form.
TT_HOST_DEVICE double cosine_without_sincos(double x) {
  const double half = math::sin(0.5 * x);
  return 1 - 2 * half * half;
}
template <typename T>
TT_HOST_DEVICE AmplitudeAndPhase amplitude_and_phase_0(double x) {
  const double w = 5 / x, t = 2 * w * w - 1, s = math::sin(x), c = cosine_without_sincos(x);
  const double p =
      chebyshev_for<T>(t, -3.410936210498114e-17, 1.103023177871277e-16, -3.714050821413154e-16, 1.3078555195901338e-15,
                       -4.841483019175697e-15, 1.8959456362961828e-14, -7.914641501338115e-14, 3.5557750052411783e-13,
                       -1.7401405706283885e-12, 9.423105578391987e-12, -5.765747662655223e-11, 4.103246366872386e-10,
                       -3.5409678948019087e-09, 3.948825587093808e-08, -6.319367118733069e-07, 1.761305551290559e-05,
                       -0.00132937162125028, 0.9986523398776954);
  const double q =
      chebyshev_for<T>(t, 8.32640853075718e-19, -2.301036357065232e-18, 6.5316323887296735e-18, -1.9085810023462685e-17,
                       5.755537813115849e-17, -1.7964302342606689e-16, 5.8230549837184e-16, -1.9680115145087463e-15,
                       6.967527155377957e-15, -2.5986485312118355e-14, 1.0280254324855211e-13, -4.3502412086017667e-13,
                       1.990142733561329e-12, -9.977816055305666e-12, 5.5817142695807205e-11, -3.5701518102394104e-10,
                       2.7026065526268818e-09, -2.548657948406561e-08, 3.247418641128558e-07, -6.43759824253235e-06,
                       0.00026380388099845215, -0.024729405164334986);
  return {c + s, s - c, p, w * q, 0.56418958354775628695 / math::sqrt(x)};
}
template <typename T>
TT_HOST_DEVICE AmplitudeAndPhase amplitude_and_phase_1(double x) {
  const double w = 5 / x, t = 2 * w * w - 1, s = math::sin(x), c = cosine_without_sincos(x);
  const double p =
      chebyshev_for<T>(t, 3.614078564738109e-17, -1.171117080126803e-16, 3.9523601713314257e-16,
                       -1.3953502148258493e-15, 5.180421738900549e-15, -2.03544697865723e-14, 8.529914525779044e-14,
                       -3.849703387824105e-13, 1.8943274995111034e-12, -1.0327344567640412e-11, 6.373158962859246e-11,
                       -4.586773977170972e-10, 4.020515478419001e-09, -4.589685232343401e-08, 7.639181732533905e-07,
                       -2.3071018862548286e-05, 0.0022437352958079985, 1.00226762068534);
  const double q =
      chebyshev_for<T>(t, 2.4221007940443373e-18, -6.885261323962649e-18, 2.0150975159994986e-17,
                       -6.087290133410104e-17, 1.9036103662163e-16, -6.183568405835825e-16, 2.0948126235658333e-15,
                       -7.436303350432923e-15, 2.781945696278766e-14, -1.1044093713083652e-13, 4.692705663517787e-13,
                       -2.1573304385076937e-12, 1.0880467184119506e-11, -6.131962898875392e-11, 3.9598445211790335e-10,
                       -3.036679728934633e-09, 2.917633021484398e-08, -3.828805678171264e-07, 8.01139890409206e-06,
                       -0.00037410379362102955, 0.07461746924293727);
  return {s - c, -(s + c), p, w * q, 0.56418958354775628695 / math::sqrt(x)};
}
// J0 and J1 up to 5, with the first positive zero (as a sum of two doubles) factored out; for J1 also the factor x.
template <typename T>
TT_HOST_DEVICE double j0_below_five(double x) {
  const double t = 2 * x * x / 25 - 1;
  return ((x - 2.404825557695773) + 1.176691651530894e-16) * (x + 2.404825557695773) *
         chebyshev_for<T>(t, 2.3433615705472256e-16, -2.119981793307844e-14, 1.606362191368658e-12,
                          -1.0017563061986844e-10, 5.032513126170568e-09, -1.9827937012047592e-07,
                          5.919230226082256e-06, -0.00012786334214099545, 0.0018734993201736279, -0.01689860151045831,
                          0.07995724165008089, -0.07405174056387834);
}
template <typename T>
TT_HOST_DEVICE double j1_below_five(double x) {
  const double t = 2 * x * x / 25 - 1;
  return x * ((x - 3.8317059702075125) + 1.5269184090088067e-16) * (x + 3.8317059702075125) *
         chebyshev_for<T>(t, 9.051454724528835e-18, -8.876744102278278e-16, 7.34347631506432e-14,
                          -5.042568567278396e-12, 2.8183488843903415e-10, -1.251337564352681e-08, 4.278886056259686e-07,
                          -1.0816174736957452e-05, 0.0001909490103660189, -0.0021632651559238044, 0.013661487082063361,
                          -0.018028415801166292);
}

// Y0 and Y1 are -infinity at 0 and NaN for negative x.
TT_HOST_DEVICE double y_limits(double x, double value) {
  return where(x > 0, value, where(x == 0, -math::kInf<double>, math::kNan<double>));
}

template <typename T>
TT_HOST_DEVICE double j0_of(double x) {
  const double a = std::fabs(x);
  return where(a <= 5, j0_below_five<T>(math::minimum(a, 5.0)), amplitude_and_phase_0<T>(math::maximum(a, 5.0)).j());
}
template <typename T>
TT_HOST_DEVICE double j1_of(double x) {
  const double a = std::fabs(x);
  const double value =
      where(a <= 5, j1_below_five<T>(math::minimum(a, 5.0)), amplitude_and_phase_1<T>(math::maximum(a, 5.0)).j());
  return where(math::signbit(x), -value, value);
}
template <typename T>
TT_HOST_DEVICE double y0_of(double x) {
  const double near = math::minimum(x, 5.0), t = 2 * near * near / 25 - 1;
  const double smooth =
      chebyshev_for<T>(t, 2.848154182311252e-17, -2.9540707750193604e-15, 2.5954970583106197e-13,
                       -1.9021689490013906e-11, 1.141220652090372e-09, -5.476431029755533e-08, 2.0406703657627165e-06,
                       -5.677525113380376e-05, 0.0011164629864165486, -0.014279159901781987, 0.10268287966073635,
                       -0.291894720865317, -0.13017522381095709, 0.20605257634092228);
  const double small = smooth + 2 / math::kPi<double> * math::log(near) * j0_below_five<T>(near);
  return y_limits(x, where(x <= 5, small, amplitude_and_phase_0<T>(math::maximum(x, 5.0)).y()));
}
template <typename T>
TT_HOST_DEVICE double y1_of(double x) {
  const double near = math::minimum(x, 5.0), t = 2 * near * near / 25 - 1;
  const double smooth = chebyshev_for<T>(
      t, -1.1707921590181557e-16, 1.1194186560306676e-14, -9.000965667133812e-13, 5.984534092223177e-11,
      -3.222883768023259e-09, 1.3699277670028168e-07, -4.44507526565354e-06, 0.000105257530278434,
      -0.0017057852565133666, 0.017111109934210778, -0.08834328868289824, 0.14189450894667655, 0.0531074450560213);
  const double small = near * smooth + 2 / math::kPi<double> * (math::log(near) * j1_below_five<T>(near) - 1 / near);
  return y_limits(x, where(x <= 5, small, amplitude_and_phase_1<T>(math::maximum(x, 5.0)).y()));
}

template <auto kFunction, typename T>
TT_HOST_DEVICE void loop_in_double(int64_t length, const T* from, T* out) {
#pragma GCC ivdep
  for (int64_t i = 0; i < length; ++i) out[i] = static_cast<T>(kFunction(static_cast<double>(from[i])));
}
template <typename T>
void loop_of_bessel_j0(int64_t length, const T* const* in, T* out) {
  loop_in_double<&j0_of<T>>(length, in[0], out);
}
template <typename T>
void loop_of_bessel_j1(int64_t length, const T* const* in, T* out) {
  loop_in_double<&j1_of<T>>(length, in[0], out);
}
template <typename T>
void loop_of_bessel_y0(int64_t length, const T* const* in, T* out) {
  loop_in_double<&y0_of<T>>(length, in[0], out);
}
template <typename T>
void loop_of_bessel_y1(int64_t length, const T* const* in, T* out) {
  loop_in_double<&y1_of<T>>(length, in[0], out);
}

}  // namespace tt::cpu::TT_ISA
