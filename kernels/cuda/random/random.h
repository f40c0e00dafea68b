// Random numbers for kernels that need some on the way.
#pragma once

#include "engine/tensor/tensor.h"

namespace tt::cuda {

// Uniform numbers of [0, 1) over a tensor of a floating dtype, from the session's generator.
void uniform_into(const Tensor& out);

}  // namespace tt::cuda
