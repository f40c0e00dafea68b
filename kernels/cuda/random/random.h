// Random numbers for other kernels.
#pragma once

#include "engine/tensor/tensor.h"

namespace tt::cuda {

// Writes uniform numbers of [from, to), from the session's generator, over a tensor of a floating dtype.
void draw_unit(const Tensor& out, double from, double to);

}  // namespace tt::cuda
