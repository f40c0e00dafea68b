// Casts between dtypes, within a device.
#pragma once

#include "kernels/cuda/runtime/queue.h"

namespace tt::cuda {

// Writes src, broadcast and converted, over dst, of another dtype, in any layout of both.
void cast_elements(const Queue& queue, const Tensor& src, const Tensor& dst);

}  // namespace tt::cuda
