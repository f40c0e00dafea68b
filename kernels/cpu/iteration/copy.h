// Parallel copies between tensors of any dtype and layout.
#pragma once

#include "engine/dispatch/dispatcher.h"
#include "engine/schema/scalar.h"
#include "engine/tensor/tensor.h"

namespace tt::cpu {

// Copies src to dst, with broadcasting and conversion. Requires that the two share no memory or have the same layout.
void copy(const Tensor& src, const Tensor& dst);
// Sets every element of dst to `value`.
void fill_with(const Tensor& dst, const Scalar& value);
// The kernels of `assign` and `clone`: copy the second or the first argument to the output.
void assign(Call& call);
void clone(Call& call);

}  // namespace tt::cpu
