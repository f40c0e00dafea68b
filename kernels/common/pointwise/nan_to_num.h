// The numbers that nan_to_num writes in place of NaN and infinities.
#pragma once

#include <limits>
#include <optional>

#include "engine/schema/dtype.h"

namespace tt {

// The largest finite number. Requires a floating dtype.
inline double largest_finite(DType dtype) {
  switch (dtype) {
    case DType::kFloat16: return 65504;
    case DType::kBFloat16: return 0x1.fep127;
    case DType::kFloat32: return std::numeric_limits<float>::max();
    default: return std::numeric_limits<double>::max();
  }
}

template <typename T>
struct Replacements {
  T nan, above, below;
};

// Infinities without a replacement become the dtype's finite limits.
inline Replacements<double> replacements(DType dtype, double nan, std::optional<double> posinf,
                                         std::optional<double> neginf) {
  const double limit = largest_finite(dtype);
  return {nan, posinf.value_or(limit), neginf.value_or(-limit)};
}

}  // namespace tt
