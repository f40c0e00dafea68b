// What the gradients of reductions, products, layers and losses call beside operators and formulas.h.
#pragma once

#include "autograd/formulas.h"

namespace tt::autograd::formulas {

// prod's, over all dimensions or one.
Tensor product_grad(const Tensor& g, const Tensor& input, Dims dims, bool keepdim);

// g (..., out) and input (..., in) collected over the leading dimensions into (out, in).
Tensor linear_grad_input(const Tensor& g, const Tensor& weight);
Tensor linear_grad_weight(const Tensor& g, const Tensor& input, SizesView weight);
// Over all dimensions but 1.
Tensor sum_over_channels(const Tensor& g);

// How softmax_backward(grad, output, dim) depends on output.
Tensor softmax_backward_grad_output(const Tensor& g, const Tensor& grad, const Tensor& output, int64_t dim);
// The gradients of the gradients: what was collected is picked again.
Tensor embedding_backward_grad(const Tensor& g, const Tensor& indices, int64_t padding_idx);
Tensor max_pool2d_backward_grad(const Tensor& g, const Tensor& indices);

// The gradients of norms in input, weight and bias: by one fused operator, or, while they are
// recorded themselves, by operators that differentiate.
Tensors batch_norm_grad(const Tensor& g, const Tensor& input, const Tensor& weight, const Tensor& mean,
                        const Tensor& rstd, bool training, double eps);
Tensors layer_norm_grad(const Tensor& g, const Tensor& input, const Tensor& weight, const Tensor& mean,
                        const Tensor& rstd, SizesView normalized_shape, double eps);
Tensors group_norm_grad(const Tensor& g, const Tensor& input, const Tensor& weight, const Tensor& mean,
                        const Tensor& rstd, int64_t num_groups, double eps);
Tensors rms_norm_grad(const Tensor& g, const Tensor& input, const Tensor& weight, const Tensor& rstd,
                      SizesView normalized_shape, double eps);

// Likewise: by one fused operator, or by operators that differentiate.
Tensor cross_entropy_grad(const Tensor& g, const Tensor& input, const Tensor& target, const Tensor& weight,
                          const Tensor& total_weight, const Tensor& largest, const Tensor& log_sum,
                          int64_t ignore_index, std::string_view reduction);

// In entered, h, c and w_hh of lstm_sequence: by one fused operator, or, while they are recorded themselves, by
// operators that differentiate.
Tensors lstm_sequence_grad(const Tensor& output_grad, const Tensor& states_grad, const Tensor& entered, const Tensor& h,
                           const Tensor& c, const Tensor& w_hh, const Tensor& output, const Tensor& states,
                           const Tensor& gates, bool reverse);

}  // namespace tt::autograd::formulas
