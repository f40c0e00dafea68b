// fill_with: fills a tensor of any layout with one number.
#pragma once

#include "engine/schema/scalar.h"
#include "engine/tensor/tensor.h"

namespace tt::cuda {

void fill_with(const Tensor& dst, const Scalar& value);

}  // namespace tt::cuda
