// Gradient functions for torch.special. Gradient formulas may also call operators and formulas.h.
#pragma once

#include <string_view>

#include "autograd/formulas/formulas.h"

namespace tt::autograd::formulas {

// Throws Error (NotImplementedError): the operator has no derivative, neither here nor in PyTorch.
Tensor not_differentiable(const Tensor& g, std::string_view name);

// Derivatives that divide by input. `result` is the function's value. They return the limit where input is zero.
Tensor i1_derivative(const Operand& input, const Tensor& result);
Tensor i1e_derivative(const Operand& input, const Tensor& result);
Tensor j1_derivative(const Operand& input, const Tensor& result);
Tensor spherical_j0_derivative(const Operand& input, const Tensor& result);

}  // namespace tt::autograd::formulas
