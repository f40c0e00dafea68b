// What the gradients of torch.special call beside operators and formulas.h.
#pragma once

#include <string_view>

#include "autograd/formulas.h"

namespace tt::autograd::formulas {

// Throws Error (NotImplementedError): nobody has said what the derivative is. PyTorch has none either.
Tensor not_differentiable(const Tensor& g, std::string_view name);

// Derivatives that divide by input: `result` is the function's value, and at zero the limit is taken.
Tensor i1_slope(const Operand& input, const Tensor& result);
Tensor i1e_slope(const Operand& input, const Tensor& result);
Tensor j1_slope(const Operand& input, const Tensor& result);
Tensor spherical_j0_slope(const Operand& input, const Tensor& result);

}  // namespace tt::autograd::formulas
