// uint64 in the order of int64, for what compares elements as that.
#pragma once

#include "engine/tensor/tensor.h"

namespace tt::cuda {

// Elements of uint64 as int64, ordered alike: the highest bit is turned, in a copy. Others are themselves.
Tensor ordered_bits(const Tensor& t);
// And back, in place, of results in uint64; others stay.
void restore_bits(const Tensor& t);

}  // namespace tt::cuda
