// Random numbers for kernels that need them internally.
#pragma once

#include "engine/tensor/tensor.h"

namespace tt::cuda {

// Fills a floating-point tensor with uniform numbers of [0, 1) from the session's generator.
void uniform_into(const Tensor& out);

}  // namespace tt::cuda
