// The values of arange, linspace and logspace.
#pragma once

#include <cstdint>

#include "engine/schema/scalar.h"
#include "kernels/common/math/complex.h"
#include "kernels/common/math/scalar_math.h"

namespace tt {

// Element i of `steps` evenly spaced numbers, real or complex. Computed from the end point that is nearer to i, so that
// rounding is symmetric and the last element is exactly `end`.
template <typename C>
TT_HOST_DEVICE C linspace_at(C start, C end, int64_t steps, int64_t i) {
  if (steps == 1) return start;
  const C step = (end - start) / C(static_cast<double>(steps - 1));
  return i < steps / 2 ? start + step * C(static_cast<double>(i)) : end - step * C(static_cast<double>(steps - 1 - i));
}

// The end points of linspace and logspace in the type used for computation. Real end points are rounded to the result's
// dtype and then converted to double.
template <typename C>
struct LinspaceEnds {
  C start, end;
};
inline LinspaceEnds<double> linspace_ends(const Scalar& start, const Scalar& end, DType dtype) {
  return {start.converted_to(dtype).to_double(), end.converted_to(dtype).to_double()};
}
inline LinspaceEnds<Complex<double>> complex_linspace_ends(const Scalar& start, const Scalar& end) {
  const auto complex_of = [](const Scalar& number) {
    return Complex<double>(number.to_complex().real(), number.to_complex().imag());
  };
  return {complex_of(start), complex_of(end)};
}

// Element i of an arithmetic sequence.
template <typename T>
struct ArithmeticSequence {
  T first, step;
  TT_HOST_DEVICE T operator()(int64_t i) const { return first + step * static_cast<T>(i); }
};

// Calls fill(sequence) with arange's sequence: of doubles if `start` or `step` is floating, else of integers.
template <typename F>
void with_arange(Scalar start, Scalar step, DType dtype, F&& fill) {
  start = start.converted_to(dtype), step = step.converted_to(dtype);
  if (start.category() == Category::kFloating || step.category() == Category::kFloating) {
    fill(ArithmeticSequence<double>{start.to_double(), step.to_double()});
  } else {
    fill(ArithmeticSequence<int64_t>{start.to_int(), step.to_int()});
  }
}

}  // namespace tt
