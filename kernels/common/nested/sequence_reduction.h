// Reductions of the sequences of a jagged tensor: how entries are combined, and the results of sequences without any.
#pragma once

#include <limits>
#include <type_traits>

#include "kernels/common/iteration/element.h"

namespace tt {

// join() combines two entries. start() is the result of no entries, in the type to compute in.
struct SumOfSequence {
  template <typename T>
  static constexpr T join(T a, T b) {
    return a + b;
  }
  template <typename T>
  static constexpr T start() {
    return -T(0);  // of no effect on any number, not even on -0
  }
};
// The extrema of a sequence with NaN are NaN.
struct LargestOfSequence {
  template <typename T>
  static constexpr T join(T a, T b) {
    return b > a || b != b ? b : a;
  }
  template <typename T>
  static constexpr T start() {
    using Limits = std::numeric_limits<T>;
    return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  }
};
struct SmallestOfSequence {
  template <typename T>
  static constexpr T join(T a, T b) {
    return b < a || b != b ? b : a;
  }
  template <typename T>
  static constexpr T start() {
    using Limits = std::numeric_limits<T>;
    return Limits::has_infinity ? Limits::infinity() : Limits::max();
  }
};

// The type that entries are added in: float32 would lose what a long sequence adds to a large sum.
template <typename T>
using SequenceTotal = std::conditional_t<std::is_same_v<T, float>, double, T>;

// The least and the largest number of a dtype; finite, as in PyTorch.
template <typename T>
struct NumberLimits {
  T least, largest;
};
template <typename T>
NumberLimits<T> number_limits(DType dtype) {
  return with_element(dtype, []<typename E>(std::type_identity<E>) -> NumberLimits<T> {
    if constexpr (std::is_integral_v<T> && !std::is_integral_v<E>) {
      fail(ErrorKind::kNotImplemented, "expected a dtype of integers");
    } else if constexpr (std::is_same_v<E, Half>) {
      return {T(-65504), T(65504)};
    } else if constexpr (std::is_same_v<E, BFloat16>) {
      return {T(-3.3895313892515355e38), T(3.3895313892515355e38)};
    } else if constexpr (std::is_arithmetic_v<E>) {
      return {static_cast<T>(std::numeric_limits<E>::lowest()), static_cast<T>(std::numeric_limits<E>::max())};
    } else {
      fail(ErrorKind::kNotImplemented, "not implemented for this dtype");
    }
  });
}

}  // namespace tt
