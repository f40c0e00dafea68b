// Casts of 8-bit floating numbers, which go through float.
#pragma once

#include "kernels/cuda/runtime/queue.h"

namespace tt::cuda {

// As cast_elements (cast.h), where at least one of both has 8-bit floating numbers.
void cast_float8(const Queue& queue, const Tensor& src, const Tensor& dst);

}  // namespace tt::cuda
