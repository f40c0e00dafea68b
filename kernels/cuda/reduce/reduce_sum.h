// Sum and Count: reductions (reduce.h) that add, and functions that compute results from the totals.
#pragma once

#include <cmath>

#include "kernels/common/math/scalar_math.h"
#include "kernels/cuda/reduce/reduce.h"

namespace tt::cuda {

// Floats are added in their own type for a few elements, then in double, so that the error does not grow with the
// number of elements.
template <typename T>
using SumTotal = std::conditional_t<std::is_floating_point_v<T>, double, int64_t>;

struct Identity {
  template <typename T>
  TT_FUNCTION T operator()(T x) const {
    return x;
  }
};
struct Squared {
  template <typename T>
  TT_FUNCTION T operator()(T x) const {
    return x * x;
  }
};
struct Magnitude {
  template <typename T>
  TT_FUNCTION T operator()(T x) const {
    return math::abs(x);
  }
};
struct NotNaN {  // replaces NaN with 0
  template <typename T>
  TT_FUNCTION T operator()(T x) const {
    return math::isnan(x) ? T(0) : x;
  }
};

// Sums Lift(element). Finish computes the result from the total.
template <typename T, typename Lift, typename Finish>
struct Sum {
  using Value = T;
  using Total = SumTotal<T>;
  struct Part {
    T recent;
    Total total;
  };
  Access out;
  Finish finish;

  TT_FUNCTION Part begin() const { return {T(0), Total(0)}; }
  TT_FUNCTION void add(Part& part, T x, int64_t) const { part.recent += Lift()(x); }
  TT_FUNCTION void flush(Part& part) const {
    part.total += static_cast<Total>(part.recent);
    part.recent = T(0);
  }
  TT_FUNCTION Total end(const Part& part) const { return part.total + static_cast<Total>(part.recent); }
  TT_FUNCTION Total merge(Total a, Total b) const { return a + b; }
  TT_FUNCTION void store(int64_t output, Total total) const { out.store(output, finish(total)); }
};

// Counts non-zero elements.
template <typename T, typename Finish>
struct Count {
  using Value = T;
  using Total = int64_t;
  using Part = int64_t;
  Access out;
  Finish finish;

  TT_FUNCTION int64_t begin() const { return 0; }
  TT_FUNCTION void add(int64_t& part, T x, int64_t) const { part += x != T(0) ? 1 : 0; }
  TT_FUNCTION void flush(int64_t&) const {}
  TT_FUNCTION int64_t end(int64_t part) const { return part; }
  TT_FUNCTION int64_t merge(int64_t a, int64_t b) const { return a + b; }
  TT_FUNCTION void store(int64_t output, int64_t total) const { out.store(output, finish(total)); }
};

// Returns the total divided by `divisor`. Does not divide integers.
struct DivideBy {
  double divisor;
  TT_FUNCTION double operator()(double total) const { return total / divisor; }
  TT_FUNCTION int64_t operator()(int64_t total) const { return total; }
};

}  // namespace tt::cuda
