// contiguous: a tensor's elements in row-major order, for kernels that walk them so.
#pragma once

#include "engine/tensor.h"

namespace tt::cpu {

// `t` itself where it is contiguous already, else a copy. Undefined stays undefined.
Tensor contiguous(const Tensor& t);
// The same, in float32 or float64. What 16-bit floats are computed in.
Tensor contiguous_as(const Tensor& t, DType dtype);
// Rounds a contiguous float32 or float64 tensor into a contiguous one of another floating type.
void convert(const Tensor& from, Tensor& to);

}  // namespace tt::cpu
