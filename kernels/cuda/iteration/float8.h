// Casts from and to 8-bit floating-point elements, which are converted through float.
#pragma once

#include "kernels/cuda/runtime/queue.h"

namespace tt::cuda {

// Like cast_elements (cast.h). Requires that src or dst is 8-bit floating-point.
void cast_float8(const Queue& queue, const Tensor& src, const Tensor& dst);

}  // namespace tt::cuda
