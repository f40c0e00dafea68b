// frexp_mantissa, frexp_exponent: the parts of a floating-point number, for operator bodies. See scalar_math.h.
//
// A header of its own, because few operators need it: only sources that call these functions include it.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/common/math/scalar_math.h"

namespace tt::math {
inline namespace TT_ISA {

// The parts of x = mantissa * 2^exponent with 0.5 <= |mantissa| < 1; x itself and 0 if x is 0, infinite or NaN. They
// are read from the bits of the number: its fraction and its biased exponent.
template <Real T>
struct BinaryParts {
  using Bits = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
  static constexpr int kFraction = std::numeric_limits<T>::digits - 1;
  static constexpr Bits kExponents = (static_cast<Bits>(2) * std::numeric_limits<T>::max_exponent - 1) << kFraction;
  static constexpr Bits kHalf = static_cast<Bits>(std::numeric_limits<T>::max_exponent - 2) << kFraction;
};
// x, or x * 2^64 if x is subnormal, whose exponent field is 0.
template <Real T>
TT_HOST_DEVICE T without_subnormals(T x) {
  return where(abs(x) < std::numeric_limits<T>::min(), static_cast<T>(x * T(18446744073709551616.0)), x);
}
template <Real T>
TT_HOST_DEVICE T frexp_mantissa(T x) {
  using P = BinaryParts<T>;
  const auto bits = std::bit_cast<typename P::Bits>(without_subnormals(x));
  const T mantissa = std::bit_cast<T>(static_cast<typename P::Bits>((bits & ~P::kExponents) | P::kHalf));
  return where(isfinite(x) & (x != T(0)), mantissa, x);
}
template <Real T>
TT_HOST_DEVICE T frexp_exponent(T x) {
  using P = BinaryParts<T>;
  const auto bits = std::bit_cast<typename P::Bits>(without_subnormals(x));
  const auto biased = static_cast<typename P::Bits>((bits & P::kExponents) >> P::kFraction);
  const T shift = where(abs(x) < std::numeric_limits<T>::min(), T(64), T(0));
  const T exponent = static_cast<T>(biased - (std::numeric_limits<T>::max_exponent - 2)) - shift;
  return where(isfinite(x) & (x != T(0)), exponent, T(0));
}

}  // namespace TT_ISA
}  // namespace tt::math
