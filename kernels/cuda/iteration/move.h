// Moves: elements to where they lie otherwise, bit by bit, within a device.
#pragma once

#include "kernels/cuda/runtime/queue.h"

namespace tt::cuda {

// Writes src, broadcast, over dst, of the same dtype, in any layout of both.
void move_elements(const Queue& queue, const Tensor& src, const Tensor& dst);

}  // namespace tt::cuda
