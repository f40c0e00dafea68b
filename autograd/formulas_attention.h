// What the gradients of attention and of sequences' losses call beside operators and formulas.h.
#pragma once

#include <string_view>

#include "autograd/formulas.h"

namespace tt::autograd::formulas {

// In query, key and value: by one fused operator, or, while they are recorded themselves, by operators that
// differentiate (all scores exist then).
Tensors attention_grad(const Tensor& g, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask,
                       const Tensor& output, const Tensor& logsumexp, bool is_causal, double scale);

// Throws Error (NotImplementedError): whatever `what` is, it differentiates once.
Tensor not_twice(const Tensor& g, std::string_view what);

}  // namespace tt::autograd::formulas
