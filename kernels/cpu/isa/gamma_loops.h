// Vectorised lgamma and incomplete gamma functions, computed in double to T's precision.
//
// Both sides of every condition are computed, and a series is summed in all lanes until the last lane has converged.
// libm and special_math.h compute these functions only element by element.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/common/math/special_math.h"
#include "kernels/cpu/isa/padded.h"
#include "kernels/cpu/isa/series.h"

namespace tt::cpu::TT_ISA {

using math::where;

// log(Gamma(y)) / (y - 2) between 1.5 and 2.5, at t = 2 (y - 2): a Chebyshev series fitted to values exact to 40
// digits.
template <typename T>
TT_HOST_DEVICE double lgamma_near_two(double t) {
  return chebyshev_for<T>(t, 3.245660731626191e-17, -2.706656814831896e-16, 2.2653768767833064e-15,
                          -1.9039501088488732e-14, 1.6079151349711552e-13, -1.3656871334744932e-12,
                          1.1678602130652374e-11, -1.0070266869830198e-10, 8.774075140687239e-10,
                          -7.747248733788217e-09, 6.962242692768951e-08, -6.410003033826223e-07, 6.110065797003576e-06,
                          -6.139556963628233e-05, 0.0006727515726001485, -0.008658972394126285, 0.16322170068760064,
                          0.41418612492156676);
}

// The terms in powers of 1 / y of Stirling's formula for log(Gamma(y)).
template <typename T>
TT_HOST_DEVICE double stirling_series(double y) {
  const double inverse = 1 / y, z = inverse * inverse;
  if constexpr (kIsShort<T>) {
    return inverse * math::polynomial(z, 0.0007936507936507937, -0.002777777777777778, 0.08333333333333333);
  } else {
    return inverse * math::polynomial(z, -0.02955065359477124, 0.00641025641025641, -0.0019175269175269176,
                                      0.0008417508417508417, -0.0005952380952380953, 0.0007936507936507937,
                                      -0.002777777777777778, 0.08333333333333333);
  }
}

// log(Gamma(y)) for y > 0. Uses the series near 2, a recurrence from there up to kReach, and Stirling's formula above.
template <typename T>
TT_HOST_DEVICE double lgamma_of_positive(double y) {
  constexpr int kSteps = kIsShort<T> ? 2 : 6;
  constexpr double kReach = kSteps + 2.5;
  double core = y, product = 1;
  for (int step = 0; step < kSteps; ++step) {
    const bool above = core >= 2.5;
    core = where(above, core - 1, core);
    product = where(above, product * core, product);
  }
  const double below = where(y < 0.5, y * (y + 1), where(y < 1.5, y, 1.0));
  // The offset of y from 2 after the recurrence. It is computed exactly; adding and subtracting 1 would round.
  const double offset = where(y < 0.5, y, where(y < 1.5, y - 1, math::minimum(core, 2.5) - 2));
  const double middle = offset * lgamma_near_two<T>(2 * offset);
  const double size = math::log(where(y < 1.5, below, where(y < kReach, product, y)));
  const double stirling = (y - 0.5) * (size - 1) + 0.4189385332046727418 + stirling_series<T>(y);
  return where(y < 1.5, middle - size, where(y < kReach, middle + size, stirling));
}

// sin(pi x) for x in [0, 0.5].
template <typename T>
TT_HOST_DEVICE double sin_pi(double x) {
  const double angle = math::kPi<double> * x;
  if constexpr (kIsShort<T>) {  // the Taylor series
    return angle * math::polynomial(angle * angle, 1.6059043836821613e-10, -2.505210838544172e-08,
                                    2.7557319223985893e-06, -0.0001984126984126984, 0.008333333333333333,
                                    -0.16666666666666666, 1.0);
  } else {
    return math::sin(angle);
  }
}

// log(|Gamma(x)|). Negative x are reflected. The result is infinite at 0, -1, -2, ...
template <typename T>
TT_HOST_DEVICE double lgamma_of(double x) {
  const double a = std::fabs(x), part = a - std::floor(a);
  const double sine = sin_pi<T>(math::minimum(part, 1 - part));
  const double right = lgamma_of_positive<T>(where(x < 0, a + 1, a));
  const double left = where(sine == 0, math::kInf<double>, 1.1447298858494001741 - math::log(sine) - right);
  return where(a == math::kInf<double>, a, where(x < 0, left, right));
}

template <typename T>
void loop_of_lgamma(int64_t length, const T* const* in, T* out) {
  const T* from = in[0];
#pragma GCC ivdep
  for (int64_t i = 0; i < length; ++i) out[i] = static_cast<T>(lgamma_of<T>(static_cast<double>(from[i])));
}

// ---- The incomplete gamma functions --------------------------------------------------------

// A series ends when the ratio of its term to the sum is at most kTolerance.
template <typename T>
inline constexpr double kTolerance = kIsShort<T> ? 1e-9 : 2.3e-16;
inline constexpr int kMaxTerms = 100000;

// The sum over n >= 0 of x^n / ((a + 1) ... (a + n)).
template <typename T>
void sum_lower_gamma(const double* a, const double* x, double* sum) {
  double term[kLanes];
  for (int64_t l = 0; l < kLanes; ++l) term[l] = sum[l] = 1;
  int64_t more = 1;
  for (int n = 1; more != 0 && n < kMaxTerms; ++n) {
    more = 0;
    for (int64_t l = 0; l < kLanes; ++l) {
      term[l] *= x[l] / (a[l] + n);
      sum[l] += term[l];
      more |= where(term[l] > kTolerance<T> * sum[l], int64_t{1}, int64_t{0});
    }
  }
}

// The sum over n >= 1 of (-x)^n / (n! (a + n)).
template <typename T>
void sum_upper_gamma(const double* a, const double* x, double* sum) {
  double factor[kLanes];
  for (int64_t l = 0; l < kLanes; ++l) factor[l] = 1, sum[l] = 0;
  int64_t more = 1;
  for (int n = 1; more != 0 && n < kMaxTerms; ++n) {
    more = 0;
    for (int64_t l = 0; l < kLanes; ++l) {
      factor[l] *= x[l] * (-1.0 / n);
      const double term = factor[l] / (a[l] + n);
      sum[l] += term;
      more |= where(std::fabs(term) > kTolerance<T> * std::fabs(sum[l]), int64_t{1}, int64_t{0});
    }
  }
}

// Continued fraction of the upper incomplete gamma function, by Lentz's method.
template <typename T>
void evaluate_gamma_fraction(const double* a, const double* x, double* value) {
  double b[kLanes], c[kLanes], d[kLanes];
  for (int64_t l = 0; l < kLanes; ++l) {
    b[l] = x[l] + 1 - a[l];
    c[l] = 1e300;
    value[l] = d[l] = 1 / b[l];
  }
  int64_t more = 1;
  for (int n = 1; more != 0 && n < kMaxTerms; ++n) {
    more = 0;
    for (int64_t l = 0; l < kLanes; ++l) {
      const double step = -n * (n - a[l]);
      b[l] += 2;
      const double below = step * d[l] + b[l], above = b[l] + step / c[l];
      d[l] = 1 / where(below == 0, 1e-300, below);
      c[l] = where(above == 0, 1e-300, above);
      const double change = d[l] * c[l];
      value[l] *= change;
      more |= where(std::fabs(change - 1) > kTolerance<T>, int64_t{1}, int64_t{0});
    }
  }
}

// x^a exp(-x) / Gamma(a). Uses Stirling's formula for large a, where the factors would overflow.
template <typename T>
TT_HOST_DEVICE double gamma_density_of(double a, double x) {
  const double u = (x - a) / a, z = 1 / (a * a);
  const double correction = (1.0 / 12 - z * (1.0 / 360 - z * (1.0 / 1260 - z / 1680))) / a;
  const double large = math::sqrt(a / (2 * math::kPi<double>)) * math::exp(a * (math::log1p(u) - u) - correction);
  const double plain = math::exp(a * math::log(x) - x - lgamma_of_positive<T>(a));
  return where((a < 20) | (std::fabs(u) > 0.4), plain, large);
}

// The upper incomplete gamma function if an argument is 0 or infinite, NaN if the arguments are invalid, and -1 if both
// arguments are positive and finite.
TT_HOST_DEVICE double upper_gamma_end(double a, double x) {
  constexpr double kInf = math::kInf<double>, kNan = math::kNan<double>;
  double end = where(x == 0, 1.0, -1.0);
  end = where((a == 0) | (x == kInf), 0.0, end);
  end = where(a == kInf, where(x == kInf, kNan, 1.0), end);
  return where((a >= 0) & (x >= 0) & ((a > 0) | (x > 0)), end, kNan);
}

// The method that computes an element: the sum for the lower function, the sum for the upper function (small
// arguments), or the upper function's continued fraction.
enum GammaSum : int64_t { kLowerSum, kUpperSum, kFraction };

// Chooses the method for the lower or the upper function, whichever is (approximately) smaller; the other function is 1
// minus its value. gammainc uses the lower function's sum wherever this sum converges fast.
template <bool kUpper>
TT_HOST_DEVICE int64_t choose_gamma_sum(double a, double x) {
  const int64_t upper = where(x > 1.1, int64_t{kFraction}, int64_t{kUpperSum});
  if constexpr (kUpper) {
    const bool lower_is_less = where(x <= 0.5, -0.4 / math::log(x), 1.1 * x) < a;
    return where(where(x > 1.1, a, where(lower_is_less, 2.0, 0.0)) > where(x > 1.1, x, 1.0), int64_t{kLowerSum}, upper);
  } else {
    return where((x > 1) & (x > a), upper, int64_t{kLowerSum});
  }
}

// Computes kLanes elements. Each sum that at least one element needs is evaluated in all lanes.
template <bool kUpper, typename T>
void incomplete_gammas(const T* shape, const T* argument, T* out) {
  double a[kLanes], x[kLanes], end[kLanes], lower[kLanes], upper[kLanes], own_a[kLanes], own_x[kLanes], sum[kLanes];
  int64_t choice[kLanes], wanted = 0;
  for (int64_t l = 0; l < kLanes; ++l) {
    const double own_shape = static_cast<double>(shape[l]), own_argument = static_cast<double>(argument[l]);
    end[l] = upper_gamma_end(own_shape, own_argument);
    a[l] = where(end[l] == -1, own_shape, 1.0);
    x[l] = where(end[l] == -1, own_argument, 1.0);
    choice[l] = choose_gamma_sum<kUpper>(a[l], x[l]);
    wanted |= int64_t{1} << choice[l];
    lower[l] = upper[l] = 0;
  }
  // Evaluates `sum_of` in the lanes that need it. The arguments of the other lanes are replaced by ones for which the
  // sum converges at once.
  const auto evaluate = [&](int64_t sum_of, double a_elsewhere, double x_elsewhere, auto evaluate_sum) {
    for (int64_t l = 0; l < kLanes; ++l) {
      own_a[l] = where(choice[l] == sum_of, a[l], a_elsewhere);
      own_x[l] = where(choice[l] == sum_of, x[l], x_elsewhere);
    }
    evaluate_sum(own_a, own_x, sum);
  };
  if (wanted & int64_t{1} << kLowerSum) {
    evaluate(kLowerSum, 1, 0, &sum_lower_gamma<T>);
    for (int64_t l = 0; l < kLanes; ++l) lower[l] = gamma_density_of<T>(a[l], x[l]) / a[l] * sum[l];
  }
  if (wanted & int64_t{1} << kFraction) {
    evaluate(kFraction, 1, 2, &evaluate_gamma_fraction<T>);
    for (int64_t l = 0; l < kLanes; ++l) upper[l] = gamma_density_of<T>(a[l], x[l]) * sum[l];
  }
  if (wanted & int64_t{1} << kUpperSum) {
    evaluate(kUpperSum, 1, 0, &sum_upper_gamma<T>);
    for (int64_t l = 0; l < kLanes; ++l) {
      const double power = a[l] * math::log(x[l]), first = -math::expm1(power - lgamma_of_positive<T>(1 + a[l]));
      const double rest = math::exp(power - lgamma_of_positive<T>(a[l])) * sum[l];
      upper[l] = where(choice[l] == kUpperSum, first - rest, upper[l]);
    }
  }
  for (int64_t l = 0; l < kLanes; ++l) {
    const bool is_lower = choice[l] == kLowerSum;
    const double value = kUpper ? where(is_lower, 1 - lower[l], upper[l]) : where(is_lower, lower[l], 1 - upper[l]);
    const double limit = kUpper ? end[l] : 1 - end[l];
    out[l] = static_cast<T>(where(end[l] == -1, value, limit));
  }
}

template <typename T>
void loop_of_gammainc(int64_t length, const T* const* in, T* out) {
  for (int64_t i = 0; i < length; i += kLanes) incomplete_gammas<false>(in[0] + i, in[1] + i, out + i);
}
template <typename T>
void loop_of_gammaincc(int64_t length, const T* const* in, T* out) {
  for (int64_t i = 0; i < length; i += kLanes) incomplete_gammas<true>(in[0] + i, in[1] + i, out + i);
}

}  // namespace tt::cpu::TT_ISA
