// draw_unit: uniform random numbers for other kernels.
#pragma once

#include "engine/tensor/tensor.h"

namespace tt::cuda {

// Fills a floating-point tensor with uniform numbers in [from, to) from the session's generator.
void draw_unit(const Tensor& out, double from, double to);

}  // namespace tt::cuda
