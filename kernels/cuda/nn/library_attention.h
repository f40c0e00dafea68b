// Attention and its gradient by a library such as cuDNN (runtime/fused_attention.h).
//
// The library and our own kernels (attention.cu) store the same logsumexp, the natural logarithm of each row's sum of
// exponentials of scaled scores, so that the gradient of either can follow the other.
#pragma once

#include "engine/tensor/tensor.h"

namespace tt::cuda {

// Take the arguments of the operators attention_forward and attention_backward. Return false, and change nothing, if
// the library is missing or does not support the case, or if its result could differ from that of our own kernels by
// more than rounding.
bool attend_by_library(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask, bool is_causal,
                       double scale, const Tensor& output, const Tensor& logsumexp);
bool differentiate_by_library(const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value,
                              const Tensor& mask, const Tensor& output, const Tensor& logsumexp, bool is_causal,
                              double scale, const Tensor& query_grad, const Tensor& key_grad, const Tensor& value_grad);

}  // namespace tt::cuda
