// Gradient functions for the components of jagged nested tensors.
#pragma once

#include <string_view>

#include "autograd/formulas/formulas.h"

namespace tt::autograd::formulas {

Tensor jagged_to_padded_grad(const Tensor& g, const Tensor& offsets, const Tensor& lengths, SizesView values_sizes);
Tensor padded_to_jagged_grad(const Tensor& g, const Tensor& offsets, const Tensor& lengths, SizesView padded_sizes);
// Entries that share an extremum share its gradient in equal parts, as in amax().
Tensor jagged_reduce_grad(const Tensor& g, const Tensor& values, const Tensor& offsets, const Tensor& lengths,
                          std::string_view reduce, const Tensor& result);

}  // namespace tt::autograd::formulas
