// Conversions between dtypes: magnitudes of complex numbers, and uint64 mapped to int64 in the same order.
#pragma once

#include "kernels/common/iteration/complex_as_real.h"

namespace tt::cpu {

// Magnitudes of a complex tensor, in the corresponding real dtype.
Tensor magnitudes(const Tensor& t);

// Copies uint64 elements to int64 with the highest bit flipped, which preserves their order. Returns other tensors
// unchanged.
Tensor ordered_bits(const Tensor& t);
// Reverts ordered_bits() in place.
void restore_bits(Tensor& t);

}  // namespace tt::cpu
