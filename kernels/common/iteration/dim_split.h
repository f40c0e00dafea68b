// DimSplit: products of a contiguous tensor's sizes before a dimension, along it, and after it.
#pragma once

#include <cstdint>

#include "engine/tensor/tensor.h"

namespace tt {

struct DimSplit {
  int64_t outer = 1, n = 1, inner = 1;

  DimSplit(SizesView sizes, int64_t dim) {
    const int64_t dims = static_cast<int64_t>(sizes.size());
    if (dims == 0) return;
    if (dim < 0) dim += dims;
    for (int64_t d = 0; d < dims; ++d) (d < dim ? outer : d == dim ? n : inner) *= sizes[d];
  }
};

}  // namespace tt
