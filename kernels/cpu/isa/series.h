// chebyshev_for<T>: a Chebyshev series (special_math.h) in double, truncated to T's precision.
#pragma once

#include <cmath>
#include <utility>

#include "kernels/common/math/special_math.h"

namespace tt::cpu::TT_ISA {

template <typename T>
inline constexpr bool kIsShort = sizeof(T) == 4;

// Coefficients start with the highest degree, which has the smallest coefficient. They are constants, so that the
// compiler drops the truncated terms.
template <typename T, typename... Rest>
TT_HOST_DEVICE double chebyshev_for(double t, Rest... coefficients) {
  constexpr double kLeast = kIsShort<T> ? 1e-10 : 0;
  double last = 0, before = 0;
  const double twice = t + t;
  bool counts = false;
  const auto add = [&](double coefficient) __attribute__((always_inline)) {
    counts |= std::fabs(coefficient) >= kLeast;
    if (counts) before = std::exchange(last, twice * last - before + coefficient);
  };
  (add(coefficients), ...);
  return last - t * before;
}

}  // namespace tt::cpu::TT_ISA
