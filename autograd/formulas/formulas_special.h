// Gradient functions for torch.special. Gradient formulas may also call operators and formulas.h.
#pragma once

#include <string_view>

#include "autograd/formulas/formulas.h"

namespace tt::autograd::formulas {

// Throws Error (NotImplementedError): the operator has no derivative, neither here nor in PyTorch.
Tensor not_differentiable(const Tensor& g, std::string_view name);

// Derivatives of Bessel functions and sinc, in which `result` is the function's value. At zero they return their
// limits.
Tensor i1_derivative(const Operand& input, const Tensor& result);
Tensor i1e_derivative(const Operand& input, const Tensor& result);
Tensor j1_derivative(const Operand& input, const Tensor& result);
Tensor y1_derivative(const Operand& input, const Tensor& result);
Tensor k0e_derivative(const Operand& input, const Tensor& result);
Tensor k1e_derivative(const Operand& input, const Tensor& result);
Tensor spherical_j0_derivative(const Operand& input, const Tensor& result);
Tensor sinc_derivative(const Operand& input);

// Gradient of log_odds: NaN outside of [0, 1].
Tensor log_odds_grad(const Tensor& g, const Operand& input);
Tensor log_ndtr_derivative(const Operand& input, const Tensor& result);

}  // namespace tt::autograd::formulas
