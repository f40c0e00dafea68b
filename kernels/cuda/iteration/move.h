// Moves: copies elements between layouts, bit by bit, on one device.
#pragma once

#include "kernels/cuda/runtime/queue.h"

namespace tt::cuda {

// Broadcasts src and writes it to dst, which has the same dtype. Both may have any layout.
void move_elements(const Queue& queue, const Tensor& src, const Tensor& dst);

}  // namespace tt::cuda
