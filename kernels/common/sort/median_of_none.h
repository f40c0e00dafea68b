#pragma once
#include <cstdint>
#include <limits>

#include "engine/schema/dtype.h"
#include "engine/schema/scalar.h"

namespace tt {

// Returns the median of no elements: NaN, or the integer that x86 converts NaN to, as PyTorch does.
inline Scalar median_of_none(DType t) {
  if (!is_integral(t)) return std::numeric_limits<double>::quiet_NaN();
  if (t == DType::kInt64) return std::numeric_limits<int64_t>::min();
  return t == DType::kInt32 ? int64_t{std::numeric_limits<int32_t>::min()} : int64_t{0};
}

}  // namespace tt
