// Gradient functions for reductions, products, layers and losses. Gradient formulas may also call operators and
// formulas.h.
#pragma once

#include "autograd/formulas/formulas.h"

namespace tt::autograd::formulas {

// Gradient of prod over all dimensions or over one dimension.
Tensor product_grad(const Tensor& g, const Tensor& input, Dims dims, bool keepdim);

// Gradients of linear. The weight gradient sums over the leading dimensions: it is (out, in) for g (..., out) and input
// (..., in).
Tensor linear_grad_input(const Tensor& g, const Tensor& weight);
Tensor linear_grad_weight(const Tensor& g, const Tensor& input, SizesView weight);
// Sums over all dimensions except dimension 1.
Tensor sum_over_channels(const Tensor& g);

// Gradient of softmax_backward(grad, output, dim) with respect to output.
Tensor softmax_backward_grad_output(const Tensor& g, const Tensor& grad, const Tensor& output, int64_t dim);
// Gradients of embedding_backward and max_pool2d_backward with respect to their first argument: the elements of g at
// the indices.
Tensor embedding_backward_grad(const Tensor& g, const Tensor& indices, int64_t padding_idx);
Tensor max_pool2d_backward_grad(const Tensor& g, const Tensor& indices);

// Return the gradients of input, weight and bias. They call one fused operator or, if the pass itself is recorded,
// differentiable operators.
Tensors batch_norm_grad(const Tensor& g, const Tensor& input, const Tensor& weight, const Tensor& mean,
                        const Tensor& rstd, bool training, double eps);
Tensors layer_norm_grad(const Tensor& g, const Tensor& input, const Tensor& weight, const Tensor& mean,
                        const Tensor& rstd, SizesView normalized_shape, double eps);
Tensors group_norm_grad(const Tensor& g, const Tensor& input, const Tensor& weight, const Tensor& mean,
                        const Tensor& rstd, int64_t num_groups, double eps);
Tensors rms_norm_grad(const Tensor& g, const Tensor& input, const Tensor& weight, const Tensor& rstd,
                      SizesView normalized_shape, double eps);

// Calls one fused operator or differentiable operators, like the normalization gradients.
Tensor cross_entropy_grad(const Tensor& g, const Tensor& input, const Tensor& target, const Tensor& weight,
                          const Tensor& total_weight, const Tensor& largest, const Tensor& log_sum,
                          int64_t ignore_index, std::string_view reduction, double label_smoothing);

// Returns the gradients of input_gates, h, c and w_hh of lstm_sequence. Calls one fused operator or, if the pass itself
// is recorded, differentiable operators.
Tensors lstm_sequence_grad(const Tensor& output_grad, const Tensor& states_grad, const Tensor& input_gates,
                           const Tensor& h, const Tensor& c, const Tensor& w_hh, const Tensor& output,
                           const Tensor& states, const Tensor& gates, bool reverse);

}  // namespace tt::autograd::formulas
