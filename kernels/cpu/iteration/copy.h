// Copies between tensors of any dtype and layout, on the process's threads.
#pragma once

#include "engine/dispatch/dispatcher.h"
#include "engine/schema/scalar.h"
#include "engine/tensor/tensor.h"

namespace tt::cpu {

// Writes src, broadcast and converted, over dst. Requires that they share no byte, or lie alike.
void copy(const Tensor& src, const Tensor& dst);
// Writes one number over all of dst.
void fill_with(const Tensor& dst, const Scalar& value);
// The kernels of `assign` and `clone`: an argument, the second or the first, lands in the output.
void assign(Call& call);
void clone(Call& call);

}  // namespace tt::cpu
