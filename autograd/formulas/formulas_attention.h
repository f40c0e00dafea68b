// Gradient functions for attention and sequence losses. Gradient formulas may also call operators and formulas.h.
#pragma once

#include <optional>
#include <string_view>

#include "autograd/formulas/formulas.h"

namespace tt::autograd::formulas {

// Returns the gradients of query, key and value. Calls one fused operator or, if the pass itself is recorded,
// differentiable operators, which materialize all attention scores. `allow_cudnn`: GPUs may use cuDNN's gradient.
// `excluded`, `rounds` and `empty_rows_are_nan`: of attention_forward.
Tensors attention_grad(const Tensor& g, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask,
                       const Tensor& output, const Tensor& logsumexp, bool is_causal, double scale, bool allow_cudnn,
                       std::optional<double> excluded, bool rounds, bool empty_rows_are_nan);

// Throws Error (NotImplementedError): the second derivative of `what` is not implemented.
Tensor no_second_derivative(const Tensor& g, std::string_view what);

}  // namespace tt::autograd::formulas
