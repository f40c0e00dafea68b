// contiguous: a tensor's elements in row-major order, for kernels that walk them so.
#pragma once

#include "engine/tensor/tensor.h"

namespace tt::cpu {

// `t` itself where it is contiguous already, else a copy. Undefined stays undefined.
Tensor contiguous(const Tensor& t);
// The same, converted.
Tensor contiguous_as(const Tensor& t, DType dtype);

}  // namespace tt::cpu
