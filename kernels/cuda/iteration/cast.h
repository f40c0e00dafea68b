// Casts between dtypes on one device.
#pragma once

#include "kernels/cuda/runtime/queue.h"

namespace tt::cuda {

// Broadcasts src, converts it and writes it to dst, which has another dtype. Both may have any layout.
void cast_elements(const Queue& queue, const Tensor& src, const Tensor& dst);

}  // namespace tt::cuda
