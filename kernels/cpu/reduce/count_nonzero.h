// count_true: the number of nonzero elements of a tensor.
#pragma once

#include "engine/tensor/tensor.h"

namespace tt::cpu {

int64_t count_true(const Tensor& t);

}  // namespace tt::cpu
