// Dtypes through others: the lengths of complex numbers, and uint64 in the order of int64.
#pragma once

#include "kernels/common/iteration/complex_as_real.h"

namespace tt::cpu {

// Of a complex tensor, in the real dtype.
Tensor magnitudes(const Tensor& t);

// Elements of uint64 as int64, ordered alike: the highest bit is turned, in a copy. Others are themselves.
Tensor ordered_bits(const Tensor& t);
// And back, in place.
void restore_bits(Tensor& t);

}  // namespace tt::cpu
