// contiguous: a tensor's elements in row-major order, for kernels that require it.
#pragma once

#include "engine/tensor/tensor.h"

namespace tt::cpu {

// Returns `t` itself if it is contiguous or undefined, else a copy.
Tensor contiguous(const Tensor& t);
// Like contiguous(), but also converts to `dtype`.
Tensor contiguous_as(const Tensor& t, DType dtype);

}  // namespace tt::cpu
