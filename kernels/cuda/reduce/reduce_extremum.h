// Extremum: a reduction (reduce.h) that finds the largest or smallest Lift(element). NaN takes precedence over numbers.
#pragma once

#include <limits>

#include "kernels/common/math/scalar_math.h"
#include "kernels/cuda/reduce/reduce.h"

namespace tt::cuda {

// Returns the identity of the reduction: the least value of T for a maximum, the greatest for a minimum.
template <typename T, bool kMax>
constexpr T extremum_identity() {
  using Limits = std::numeric_limits<T>;
  if constexpr (Limits::has_infinity)
    return kMax ? -Limits::infinity() : Limits::infinity();
  else
    return kMax ? Limits::lowest() : Limits::max();
}

template <typename T, bool kMax, typename Lift>
struct Extremum {
  using Value = T;
  using Total = T;
  using Part = T;
  Access out;
  T of_none;  // the result for an empty input

  TT_FUNCTION T begin() const { return of_none; }
  TT_FUNCTION void add(T& part, T x, int64_t) const { part = merge(part, Lift()(x)); }
  TT_FUNCTION void flush(T&) const {}
  TT_FUNCTION T end(T part) const { return part; }
  TT_FUNCTION T merge(T a, T x) const { return ((kMax ? x > a : x < a) | math::isnan(x)) ? x : a; }
  TT_FUNCTION void store(int64_t output, T total) const { out.store(output, total); }
};

}  // namespace tt::cuda
