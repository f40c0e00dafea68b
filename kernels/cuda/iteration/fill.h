// fill_with: one number over a tensor, in any layout.
#pragma once

#include "engine/schema/scalar.h"
#include "engine/tensor/tensor.h"

namespace tt::cuda {

void fill_with(const Tensor& dst, const Scalar& value);

}  // namespace tt::cuda
