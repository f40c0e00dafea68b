// AlongShape: a contiguous tensor as what lies before a dimension, the dimension, and what lies after it.
#pragma once

#include <cstdint>

#include "engine/tensor/tensor.h"

namespace tt {

struct AlongShape {
  int64_t outer = 1, n = 1, inner = 1;

  AlongShape(SizesView sizes, int64_t dim) {
    const int64_t dims = static_cast<int64_t>(sizes.size());
    if (dims == 0) return;
    if (dim < 0) dim += dims;
    for (int64_t d = 0; d < dims; ++d) (d < dim ? outer : d == dim ? n : inner) *= sizes[d];
  }
};

}  // namespace tt
