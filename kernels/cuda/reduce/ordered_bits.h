// ordered_bits: maps uint64 to int64 with the same order, for kernels that compare elements as int64.
#pragma once

#include "engine/tensor/tensor.h"

namespace tt::cuda {

// Returns a copy of a uint64 tensor as int64, with the highest bit inverted so that the order is preserved. Returns
// tensors of other dtypes unchanged.
Tensor ordered_bits(const Tensor& t);
// Inverts the mapping in place in a uint64 result. Does nothing for other dtypes.
void restore_bits(const Tensor& t);

}  // namespace tt::cuda
