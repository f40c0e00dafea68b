// add_bias: adds a bias along one dimension of a result.
#pragma once

#include "engine/tensor/tensor.h"

namespace tt::cuda {

// Adds bias[(i / inner) % bias.numel()] to element i of `out`. Both must be contiguous. Does nothing if bias is
// undefined.
void add_bias(const Tensor& bias, int64_t inner, const Tensor& out);

}  // namespace tt::cuda
