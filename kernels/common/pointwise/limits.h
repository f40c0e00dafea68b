// The limits of the floating dtypes.
#pragma once

#include <limits>

#include "engine/schema/dtype.h"

namespace tt {

// The largest finite number. Requires a floating dtype.
inline double highest(DType dtype) {
  switch (dtype) {
    case DType::kFloat16: return 65504;
    case DType::kBFloat16: return 0x1.fep127;
    case DType::kFloat32: return std::numeric_limits<float>::max();
    default: return std::numeric_limits<double>::max();
  }
}

}  // namespace tt
