// The functions of torch.special that operator bodies call, for one element of float or double.
//
// As in scalar_math.h, everything is inline and the same source serves every backend. Functions without loops evaluate
// both sides of every condition, so that loops that call them vectorise. Functions with loops compute in double. The
// Chebyshev series were fitted for this file: they interpolate values of full double precision at 200 nodes. Each
// series ends where the next term is below double's precision.
#pragma once

#include <utility>

#include "kernels/common/math/scalar_math.h"

namespace tt::math {
inline namespace TT_ISA {

// The value of a Chebyshev series at t in [-1, 1], by Clenshaw's recurrence. Coefficients start with the highest
// degree.
template <Real T, typename... Rest>
TT_HOST_DEVICE T chebyshev(T t, Rest... coefficients) {
  T last = 0, before = 0;
  const T twice = t + t;
  ((before = std::exchange(last, twice * last - before + static_cast<T>(coefficients))), ...);
  return last - t * before;
}

// ---- Error functions and the normal distribution -------------------------------------------

// exp(x^2) erfc(x). For x >= 0 a series in (x - 3.75) / (x + 3.75) (Shepherd and Laframboise, "Chebyshev
// approximation of (1 + 2x) exp(x^2) erfc(x)", 1981); for x < 0 by reflection.
template <Real T>
TT_HOST_DEVICE T erfcx(T x) {
  const T a = abs(x);
  const T t = where(isinf(a), T(1), (a - T(3.75)) / (a + T(3.75)));
  const T right =
      chebyshev(t, -1.6209256159527285e-15, -1.7841284005726266e-15, 3.328004538616369e-14, 3.284039706841213e-14,
                -9.653478016957706e-13, 1.943067928777964e-13, 2.8687621167478027e-11, -6.318083389800222e-11,
                -7.754402187032384e-10, 4.521959775516393e-09, 1.0764999309742507e-08, -2.1886401031068203e-07,
                7.740383064902546e-07, 4.13902798607424e-06, -6.916973302495855e-05, 0.0004907758365259163,
                -0.002413163540417953, 0.009074997670705418, -0.02665866843530605, 0.059209939998192025,
                -0.08424913336651801, -0.004590054580646381, 1.1775789345674017) /
      (T(1) + T(2) * a);
  return where(x < T(0), T(2) * exp(x * x) - right, right);
}
template <Real T>
TT_HOST_DEVICE T ndtr(T x) {
  return T(0.5) * erfc(x * T(-0.70710678118654752440));
}
template <Real T>
TT_HOST_DEVICE T log_ndtr(T x) {
  constexpr T kRootHalf = static_cast<T>(0.70710678118654752440);
  const T tail = log(T(0.5) * erfcx(-minimum(x, T(-1)) * kRootHalf)) - T(0.5) * x * x;
  const T rest = log1p(T(-0.5) * erfc(x * kRootHalf));
  return where(x < T(-1), tail, rest);
}
// Quantile of the normal distribution: Wichura, "Algorithm AS 241" (Applied Statistics 37, 1988).
template <Real T>
TT_HOST_DEVICE T ndtri(T p) {
  const T q = p - T(0.5);
  const T c = T(0.180625) - q * q;
  const T central =
      q *
      polynomial(c, 2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
                 13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.387132872796366608) /
      polynomial(c, 5226.495278852545925, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867,
                 5394.1960214247511077, 687.1870074920579083, 42.313330701600911252, 1.0);
  const T r = sqrt(-log(minimum(p, T(1) - p)));
  const T near = r - T(1.6), far = r - T(5);
  const T middle =
      polynomial(near, 7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177,
                 1.27045825245236838258, 3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959,
                 1.42343711074968357734) /
      polynomial(near, 1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966,
                 0.14810397642748007459, 0.68976733498510000455, 1.6763848301838038494, 2.05319162663775882187, 1.0);
  const T extreme = polynomial(far, 2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386,
                               0.026532189526576123093, 0.29656057182850489123, 1.7848265399172913358,
                               5.4637849111641143699, 6.6579046435011037772) /
                    polynomial(far, 2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5,
                               7.868691311456132591e-4, 0.0148753612908506148525, 0.13692988092273580531,
                               0.59983220655588793769, 1.0);
  const T tail = copysign(where(r <= T(5), middle, extreme), q);
  const T value = where(abs(q) <= T(0.425), central, tail);
  return where((p == T(0)) | (p == T(1)), copysign(kInf<T>, q), where((p < T(0)) | (p > T(1)), kNan<T>, value));
}
template <Real T>
TT_HOST_DEVICE T entr(T x) {
  const T value = -x * log(where(x > T(0), x, T(1)));
  return where(isnan(x) | (x >= T(0)), value, -kInf<T>);
}
template <Real T>
TT_HOST_DEVICE T xlog1py(T x, T y) {
  return where((x == T(0)) & !isnan(y), T(0), x * log1p(y));
}

// ---- Bessel functions ----------------------------------------------------------------------

#define TT_LIBM_BESSEL(name, function)                            \
  TT_HOST_DEVICE float name(float x) { return ::function##f(x); } \
  TT_HOST_DEVICE double name(double x) { return ::function(x); }
TT_LIBM_BESSEL(bessel_j0, j0)
TT_LIBM_BESSEL(bessel_j1, j1)
TT_LIBM_BESSEL(bessel_y0, y0)
TT_LIBM_BESSEL(bessel_y1, y1)
#undef TT_LIBM_BESSEL

template <Real T>
TT_HOST_DEVICE T spherical_bessel_j0(T x) {
  const T z = x * x;
  const T series = polynomial(z, -1.0 / 39916800, 1.0 / 362880, -1.0 / 5040, 1.0 / 120, -1.0 / 6, 1.0);
  return where(isinf(x), T(0), where(abs(x) < T(0.5), series, sin(x) / x));
}

// exp(-|x|) I0(x).
template <Real T>
TT_HOST_DEVICE T i0e(T x) {
  const T a = abs(x), near = minimum(a, T(8)), far = maximum(a, T(8));
  const T small =
      chebyshev(near * T(0.25) - T(1), 1.5376588891058418e-15, -1.1679268663300491e-14, 7.646439037500841e-14,
                -4.85346207668158e-13, 2.954790856435352e-12, -1.726826348580346e-11, 9.675803380737591e-11,
                -5.18979322849944e-10, 2.659823703510256e-09, -1.3000250169148409e-08, 6.046995004727052e-08,
                -2.6707938531211896e-07, 1.1173875389114407e-06, -4.416738358531402e-06, 1.644844807049961e-05,
                -5.754195010051921e-05, 0.00018850288509575486, -0.0005763755745385569, 0.001639475616941317,
                -0.004324309995050515, 0.010546460394594748, -0.023737414805899353, 0.049305284239670545,
                -0.09490109704804749, 0.17162090152220863, -0.30468267234319835, 0.338397637204738);
  const T large =
      chebyshev(T(16) / far - T(1), -3.4638958368304885e-16, -2.3092638912203257e-16, 1.8118839761882555e-15,
                3.733680031814402e-15, -9.658940314238862e-15, -4.1466829969749597e-14, 1.5307755063531658e-14,
                3.8527847578961885e-13, 7.179368211041038e-13, -1.7940782193193173e-12, -1.3215872840532938e-11,
                -3.149915883682297e-11, 1.1889156326105876e-11, 4.940602815750595e-10, 3.396231893493251e-09,
                2.266668996497856e-08, 2.048918588570814e-07, 2.891370520892167e-06, 6.889758346915187e-05,
                0.003369116478255698, 0.40224520550705434);
  return where(a <= T(8), small, large / sqrt(far));
}
template <Real T>
TT_HOST_DEVICE T i0(T x) {
  return exp(abs(x)) * i0e(x);
}
// exp(-|x|) I1(x).
template <Real T>
TT_HOST_DEVICE T i1e(T x) {
  const T a = abs(x), near = minimum(a, T(8)), far = maximum(a, T(8));
  const T small =
      chebyshev(near * T(0.25) - T(1), -1.1096332186433244e-15, 7.457368056407177e-15, -5.028963356856764e-14,
                3.2226415980218806e-13, -1.9839861697956705e-12, 1.1736166483089506e-11, -6.663478213653207e-11,
                3.625590050404526e-10, -1.887249776177935e-09, 9.38153729673763e-09, -4.4450591245304154e-08,
                2.0032947525422396e-07, -8.568720265031416e-07, 3.470251308021477e-06, -1.3273163655881659e-05,
                4.781565107545474e-05, -0.00016176081582588043, 0.0005122859561685564, -0.0015135724506312276,
                0.004156422944312771, -0.010564084894626142, 0.02472644903062644, -0.05294598120809491,
                0.10264365868984704, -0.176416518357834, 0.1262935932218168);
  const T large =
      chebyshev(T(16) / far - T(1), 2.4202861936828414e-16, 4.440892098500626e-16, -1.8407497748285097e-15,
                -3.884670363163423e-15, 1.0311751452718453e-14, 4.275690912436403e-14, -2.111644192837048e-14,
                -4.0836001247157586e-13, -7.199396634405275e-13, 2.035722701521081e-12, 1.4125753899918436e-11,
                3.2526044080327665e-11, -1.8974946058847308e-11, -5.589743112821566e-10, -3.835380517624998e-09,
                -2.631468840164075e-08, -2.512236238816357e-07, -3.8825648088014475e-06, -0.00011058893876265907,
                -0.009761097491361425, 0.3892881175091401);
  return where(a <= T(8), small * x, copysign(large / sqrt(far), x));
}
template <Real T>
TT_HOST_DEVICE T i1(T x) {
  return exp(abs(x)) * i1e(x);
}
// K0(x) + log(x / 2) I0(x) for x <= 2, exp(x) K0(x) above.
template <Real T>
TT_HOST_DEVICE T k0_part(T x) {
  const T near = minimum(x, T(2)), far = maximum(x, T(2));
  const T small = chebyshev(near * near * T(0.5) - T(1), 4.258815522462101e-14, 1.0349667789455453e-11,
                            1.904516542250434e-09, 2.534791078145915e-07, 2.2862121031312355e-05, 0.0012646154114468189,
                            0.03597993651536155, 0.34428989992462855, -0.26766369661695133);
  const T large = chebyshev(
      T(4) / far - T(1), -1.4988010832439613e-15, 6.461498003318411e-15, -2.2515322939398176e-14, 7.998934847819328e-14,
      -2.97912805535816e-13, 1.1400391741744897e-12, -4.514619789119934e-12, 1.855925191307506e-11,
      -7.957458691976172e-11, 3.577395268905548e-10, -1.6975344685477013e-09, 8.574034060515601e-09,
      -4.6604898855662215e-08, 2.766813635446397e-07, -1.8317555225166871e-06, 1.3949813718578953e-05,
      -0.0001284954958161322, 0.0015698838857300147, -0.03144810131196451, 1.2201515410329777);
  return where(x <= T(2), small, large / sqrt(far));
}
// x (K1(x) - log(x / 2) I1(x)) for x <= 2, exp(x) K1(x) above.
template <Real T>
TT_HOST_DEVICE T k1_part(T x) {
  const T near = minimum(x, T(2)), far = maximum(x, T(2));
  const T small =
      chebyshev(near * near * T(0.5) - T(1), -2.4336088699783433e-15, -6.666533991506185e-13, -1.411487371427711e-10,
                -2.2133876638186222e-08, -2.433406141388872e-06, -0.0001730288957515258, -0.006975723859639729,
                -0.12261118082265722, -0.35315596077654493, 0.7626501136694739);
  const T large = chebyshev(
      T(4) / far - T(1), 2.3847590568948363e-15, -6.8656191842819684e-15, 2.4513724383723458e-14,
      -9.010570067857771e-14, 3.349676092057052e-13, -1.2894751932890358e-12, 5.1396220612787145e-12,
      -2.129992182631213e-11, 9.21834431011348e-11, -4.1903564174106123e-10, 2.015049780368372e-09,
      -1.0345762397889757e-08, 5.741084137866892e-08, -3.5019606069219834e-07, 2.4064849480609497e-06,
      -1.9361979741958637e-05, 0.00019521551847152097, -0.0028578168596228616, 0.1039237365768173, 1.360313095242221);
  return where(x <= T(2), small, large / sqrt(far));
}
// K0 and K1 are infinite at zero and undefined for negative x.
template <Real T>
TT_HOST_DEVICE T k_limits(T x, T value) {
  return where(x > T(0), value, where(x == T(0), kInf<T>, kNan<T>));
}
template <Real T>
TT_HOST_DEVICE T k0(T x) {
  const T near = minimum(x, T(2));
  return k_limits(x, where(x <= T(2), k0_part(x) - log(T(0.5) * near) * i0(near), exp(-x) * k0_part(x)));
}
template <Real T>
TT_HOST_DEVICE T k0e(T x) {
  const T near = minimum(x, T(2));
  return k_limits(x, where(x <= T(2), exp(near) * (k0_part(x) - log(T(0.5) * near) * i0(near)), k0_part(x)));
}
template <Real T>
TT_HOST_DEVICE T k1(T x) {
  const T near = minimum(x, T(2));
  return k_limits(x, where(x <= T(2), k1_part(x) / near + log(T(0.5) * near) * i1(near), exp(-x) * k1_part(x)));
}
template <Real T>
TT_HOST_DEVICE T k1e(T x) {
  const T near = minimum(x, T(2));
  return k_limits(x, where(x <= T(2), exp(near) * (k1_part(x) / near + log(T(0.5) * near) * i1(near)), k1_part(x)));
}

// Ai(x): the Maclaurin series between -4.5 and 2 (DLMF 9.4.1); outside, the modulus and phase forms (DLMF 9.7), with
// Chebyshev series fitted in place of the asymptotic expansions.
template <Real T>
TT_HOST_DEVICE T airy_ai(T argument) {
  const double x = static_cast<double>(argument);
  if (!(x >= -kInf<double> && x <= kInf<double>)) return kNan<T>;
  const double z = 2.0 / 3 * std::fabs(x) * std::sqrt(std::fabs(x)), quarter = std::sqrt(std::sqrt(std::fabs(x)));
  if (x > 2) {
    const double t = 2 * (2 / x) * std::sqrt(2 / x) - 1;
    return static_cast<T>(
        std::exp(-z) / quarter *
        chebyshev(t, -3.352873534367973e-16, 1.099120794378905e-15, -4.720668300706166e-15, 1.4788170688007084e-14,
                  -5.562106331069572e-14, 2.0621171437085196e-13, -7.977241089918153e-13, 3.1980218473393053e-12,
                  -1.3363066209137742e-11, 5.85235748751245e-11, -2.7035511163120417e-10, 1.3286088007546938e-09,
                  -7.0222400871955415e-09, 4.051516862890736e-08, -2.605774404873529e-07, 1.9280521654607696e-06,
                  -1.728099784287451e-05, 0.00020669586013761344, -0.0041729675620485905, 0.2776956095117046));
  }
  if (x < -4.5) {
    if (isinf(x)) return T(0);
    constexpr double kFirst = 6.363961030678928;  // 2/3 4.5^1.5
    const double t = 2 * (kFirst / z) * (kFirst / z) - 1, phase = z - 0.25 * kPi<double>;
    const double even =
        chebyshev(t, -1.1812772982011666e-15, 7.984723993104126e-15, -4.9249493372371947e-14, 3.3276492672484894e-13,
                  -2.5760904520666373e-12, 2.3634214585399606e-11, -2.6897236438117036e-10, 4.068502166276744e-09,
                  -9.14792676809384e-08, 3.7464948784915467e-06, -0.00044255600249016425, 0.9995536016592855);
    const double odd =
        chebyshev(t, -1.527111770371903e-15, -5.46451772720502e-15, 4.9232840027002566e-14, -3.048550301087971e-13,
                  1.916211078700769e-12, -1.3483673066971847e-11, 1.1047322945323401e-10, -1.0947474438083304e-09,
                  1.3871872268644836e-08, -2.4531074490630187e-07, 7.028513117813273e-06, -0.000438474153060735,
                  0.06899868137466185);
    return static_cast<T>(0.56418958354775628695 / quarter * (std::cos(phase) * even + std::sin(phase) * odd / z));
  }
  const double cube = x * x * x;
  double f = 1, g = x, term_f = 1, term_g = x;
  for (int k = 1; k <= 40; ++k) {
    term_f *= cube / (3 * k * (3 * k - 1));
    term_g *= cube / (3 * k * (3 * k + 1));
    f += term_f;
    g += term_g;
  }
  return static_cast<T>(0.35502805388781723926 * f - 0.25881940379280679840 * g);
}

// ---- Zeta and gamma functions --------------------------------------------------------------

// Hurwitz zeta function: sums the first terms directly, then applies the Euler-Maclaurin formula. NaN if `start` is
// below -10000.
template <Real T>
TT_HOST_DEVICE T zeta(T order, T start) {
  const double x = static_cast<double>(order);
  double a = static_cast<double>(start);
  if (x == 1) return kInf<T>;
  if (!(x > 1)) return kNan<T>;
  if (a <= 0) {
    if (a == std::floor(a)) return kInf<T>;
    if (x != std::floor(x) || a < -10000) return kNan<T>;
  }
  double sum = std::pow(a, -x), term = 0;
  for (int i = 0; i < 9 || a <= 9; ++i) {
    a += 1;
    term = std::pow(a, -x);
    sum += term;
    if (std::fabs(term) < 1.1e-16 * std::fabs(sum)) return static_cast<T>(sum);
  }
  sum += term * a / (x - 1) - 0.5 * term;
  // (2k)! / B(2k), including the sign.
  constexpr double kDivisors[12] = {12.0,
                                    -720.0,
                                    30240.0,
                                    -1209600.0,
                                    47900160.0,
                                    -1.8924375803183791606e9,
                                    7.47242496e10,
                                    -2.950130727918164224e12,
                                    1.1646782814350067249e14,
                                    -4.5979787224074726105e15,
                                    1.8152105401943546773e17,
                                    -7.1661652561756670113e18};
  double factor = 1;
  for (int i = 0; i < 12; ++i) {
    factor *= x + 2 * i;
    term /= a;
    const double t = factor * term / kDivisors[i];
    sum += t;
    if (std::fabs(t) < 1.1e-16 * std::fabs(sum)) break;
    factor *= x + 2 * i + 1;
    term /= a;
  }
  return static_cast<T>(sum);
}
template <Real T>
TT_HOST_DEVICE T polygamma(T n, T x) {
  if (n == T(0)) return digamma(x);
  if (n == T(1)) return trigamma(x);
  const double order = static_cast<double>(n);
  const double size = std::exp(static_cast<double>(lgamma(order + 1))) * zeta(order + 1, static_cast<double>(x));
  return static_cast<T>(std::fmod(order, 2) == 1 ? size : -size);
}

// x^a exp(-x) / Gamma(a). Uses Stirling's formula for large a, where the factors would overflow.
TT_HOST_DEVICE double gamma_density(double a, double x) {
  const double u = (x - a) / a;
  if (a < 20 || std::fabs(u) > 0.4) return std::exp(a * std::log(x) - x - lgamma(a));
  const double z = 1 / (a * a);
  const double correction = (1.0 / 12 - z * (1.0 / 360 - z * (1.0 / 1260 - z / 1680))) / a;
  return std::sqrt(a / (2 * kPi<double>)) * std::exp(a * (std::log1p(u) - u) - correction);
}
// Power series of the lower regularised incomplete gamma function.
TT_HOST_DEVICE double lower_gamma_series(double a, double x) {
  double sum = 1, term = 1;
  for (int n = 1; n < 100000 && term > 1.1e-16 * sum; ++n) {
    term *= x / (a + n);
    sum += term;
  }
  return gamma_density(a, x) / a * sum;
}
// Series of the upper regularised incomplete gamma function, for small x.
TT_HOST_DEVICE double upper_gamma_series(double a, double x) {
  double sum = 0, factor = 1;
  for (int n = 1; n < 1000; ++n) {
    factor *= -x / n;
    const double term = factor / (a + n);
    sum += term;
    if (std::fabs(term) <= 1.1e-16 * std::fabs(sum)) break;
  }
  return -std::expm1(a * std::log(x) - lgamma(1 + a)) - std::exp(a * std::log(x) - lgamma(a)) * sum;
}
// Continued fraction of the upper regularised incomplete gamma function, by Lentz's method.
TT_HOST_DEVICE double upper_gamma_fraction(double a, double x) {
  double b = x + 1 - a, c = 1e300, d = 1 / b, value = d;
  for (int n = 1; n < 100000; ++n) {
    const double step = -n * (n - a);
    b += 2;
    d = step * d + b;
    d = 1 / (d == 0 ? 1e-300 : d);
    c = b + step / c;
    c = c == 0 ? 1e-300 : c;
    value *= d * c;
    if (std::fabs(d * c - 1) < 1.1e-16) break;
  }
  return gamma_density(a, x) * value;
}
// The upper incomplete gamma function if an argument is 0 or infinite, NaN if the arguments are invalid, and -1 if both
// arguments are positive and finite.
TT_HOST_DEVICE double upper_gamma_limit(double a, double x) {
  if (!(a >= 0 && x >= 0) || (a == 0 && x == 0)) return kNan<double>;
  if (isinf(a)) return isinf(x) ? kNan<double> : 1;
  if (a == 0 || isinf(x)) return 0;
  return x == 0 ? 1 : -1;
}
template <Real T>
TT_HOST_DEVICE T gammaincc(T shape, T argument) {
  const double a = static_cast<double>(shape), x = static_cast<double>(argument);
  const double limit = upper_gamma_limit(a, x);
  if (!(limit < 0)) return static_cast<T>(limit);
  if (x > 1.1) return static_cast<T>(x < a ? 1 - lower_gamma_series(a, x) : upper_gamma_fraction(a, x));
  const bool lower_is_less = x <= 0.5 ? -0.4 / std::log(x) < a : x * 1.1 < a;
  return static_cast<T>(lower_is_less ? 1 - lower_gamma_series(a, x) : upper_gamma_series(a, x));
}
template <Real T>
TT_HOST_DEVICE T gammainc(T shape, T argument) {
  const double a = static_cast<double>(shape), x = static_cast<double>(argument);
  const double limit = upper_gamma_limit(a, x);
  if (!(limit < 0)) return static_cast<T>(1 - limit);
  return static_cast<T>(x > 1 && x > a ? 1 - gammaincc(a, x) : lower_gamma_series(a, x));
}

// ---- Orthogonal polynomials ----------------------------------------------------------------
// The degree n is truncated to an integer. A negative degree gives 0, a degree above a million gives NaN. The Chebyshev
// polynomials T, U, V and W share a recurrence, and have trigonometric forms between -1 and 1.

// -1 if the degree is valid, else the polynomial's value.
TT_HOST_DEVICE double degree_limit(double n) { return n < 0 ? 0 : n <= 1e6 ? -1 : kNan<double>; }
// p(n), where p(0) = 1, p(1) = first and p(k + 1) = 2 x p(k) - p(k - 1).
TT_HOST_DEVICE double chebyshev_recurrence(double x, double n, double first) {
  if (n == 0) return 1;
  double before = 1, value = first;
  for (double k = 1; k < n && !isnan(value); ++k) before = std::exchange(value, 2 * x * value - before);
  return value;
}
template <Real T>
TT_HOST_DEVICE T chebyshev_polynomial_t(T argument, T degree) {
  const double x = static_cast<double>(argument), n = std::trunc(static_cast<double>(degree));
  if (const double limit = degree_limit(n); limit != -1) return static_cast<T>(limit);
  if (n > 6 && std::fabs(x) < 1) return static_cast<T>(std::cos(n * std::acos(x)));
  return static_cast<T>(chebyshev_recurrence(x, n, x));
}
template <Real T>
TT_HOST_DEVICE T chebyshev_polynomial_u(T argument, T degree) {
  const double x = static_cast<double>(argument), n = std::trunc(static_cast<double>(degree));
  if (const double limit = degree_limit(n); limit != -1) return static_cast<T>(limit);
  if (n > 8 && std::fabs(x) < 0.999) return static_cast<T>(std::sin((n + 1) * std::acos(x)) / std::sin(std::acos(x)));
  return static_cast<T>(chebyshev_recurrence(x, n, 2 * x));
}
template <Real T>
TT_HOST_DEVICE T chebyshev_polynomial_v(T argument, T degree) {
  const double x = static_cast<double>(argument), n = std::trunc(static_cast<double>(degree));
  if (const double limit = degree_limit(n); limit != -1) return static_cast<T>(limit);
  if (n > 8 && std::fabs(x) < 0.999) {
    return static_cast<T>(std::cos((n + 0.5) * std::acos(x)) / std::cos(0.5 * std::acos(x)));
  }
  return static_cast<T>(chebyshev_recurrence(x, n, 2 * x - 1));
}
template <Real T>
TT_HOST_DEVICE T chebyshev_polynomial_w(T argument, T degree) {
  const double x = static_cast<double>(argument), n = std::trunc(static_cast<double>(degree));
  if (const double limit = degree_limit(n); limit != -1) return static_cast<T>(limit);
  if (n > 8 && std::fabs(x) < 0.999) {
    return static_cast<T>(std::sin((n + 0.5) * std::acos(x)) / std::sin(0.5 * std::acos(x)));
  }
  return static_cast<T>(chebyshev_recurrence(x, n, 2 * x + 1));
}
template <Real T>
TT_HOST_DEVICE T hermite_polynomial_h(T argument, T degree) {
  const double x = static_cast<double>(argument), n = std::trunc(static_cast<double>(degree));
  if (const double limit = degree_limit(n); limit != -1) return static_cast<T>(limit);
  double before = 0, value = 1;
  for (double k = 0; k < n && !isnan(value); ++k) {
    before = std::exchange(value, 2 * x * value - 2 * k * before);
  }
  return static_cast<T>(value);
}
template <Real T>
TT_HOST_DEVICE T hermite_polynomial_he(T argument, T degree) {
  const double x = static_cast<double>(argument), n = std::trunc(static_cast<double>(degree));
  if (const double limit = degree_limit(n); limit != -1) return static_cast<T>(limit);
  double before = 0, value = 1;
  for (double k = 0; k < n && !isnan(value); ++k) before = std::exchange(value, x * value - k * before);
  return static_cast<T>(value);
}
template <Real T>
TT_HOST_DEVICE T laguerre_polynomial_l(T argument, T degree) {
  const double x = static_cast<double>(argument), n = std::trunc(static_cast<double>(degree));
  if (const double limit = degree_limit(n); limit != -1) return static_cast<T>(limit);
  double before = 0, value = 1;
  for (double k = 0; k < n && !isnan(value); ++k) {
    before = std::exchange(value, ((2 * k + 1 - x) * value - k * before) / (k + 1));
  }
  return static_cast<T>(value);
}
template <Real T>
TT_HOST_DEVICE T legendre_polynomial_p(T argument, T degree) {
  const double x = static_cast<double>(argument), n = std::trunc(static_cast<double>(degree));
  if (const double limit = degree_limit(n); limit != -1) return static_cast<T>(limit);
  double before = 0, value = 1;
  for (double k = 0; k < n && !isnan(value); ++k) {
    before = std::exchange(value, ((2 * k + 1) * x * value - k * before) / (k + 1));
  }
  return static_cast<T>(value);
}

}  // namespace TT_ISA
}  // namespace tt::math
