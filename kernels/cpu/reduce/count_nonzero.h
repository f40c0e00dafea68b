// Counts of nonzero elements.
#pragma once

#include "engine/tensor/tensor.h"
#include "kernels/common/reduce/reduce_plan.h"

namespace tt::cpu {

// Stores the number of nonzero elements of each output in `out`, which must be contiguous. `input` must be real.
void count_into(const Tensor& input, const ReducePlan& plan, Tensor& out);

// The number of nonzero elements of a tensor.
int64_t count_true(const Tensor& t);

}  // namespace tt::cpu
