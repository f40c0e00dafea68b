// Functions, not operators, that the composites of products, convolutions, losses and norms call.
//
// Absent optional tensors are undefined. Results are contiguous.
#pragma once

#include "engine/composites/composites.h"

namespace tt::composites {

// beta * input + alpha * product; does not read `input` if beta is 0.
Tensor add_product(const Tensor& input, const Tensor& product, const Scalar& beta, const Scalar& alpha);
Tensor add_outer(const Tensor& input, const Tensor& product, const Scalar& beta, const Scalar& alpha);
Tensor inner_product(const Tensor& input, const Tensor& other);
Tensor kronecker(const Tensor& input, const Tensor& other);
Tensor padded_edges(const Tensor& input, SizesView pad, std::string_view mode);
Tensor bilinear_form(const Tensor& input1, const Tensor& input2, const Tensor& weight, const Tensor& bias);

// Accept batched and unbatched input.
Tensor convolve(const Tensor& input, const Tensor& weight, const Tensor& bias, SizesView stride, SizesView padding,
                SizesView dilation, int64_t groups);
Tensor convolve_transposed(const Tensor& input, const Tensor& weight, const Tensor& bias, SizesView stride,
                           SizesView padding, SizesView output_padding, int64_t groups, SizesView dilation);

Tensor cosine(const Tensor& x1, const Tensor& x2, int64_t dim, double eps);
Tensor pairwise_distances(const Tensor& x1, const Tensor& x2, double p, std::optional<std::string_view> compute_mode);
// Returns the difference between 1 and the next larger number of the dtype.
double epsilon(DType dtype);
Tensor rms_normalize(const Tensor& input, SizesView normalized_shape, const Tensor& weight, double eps);

Tensor renormalize(const Tensor& input, const Scalar& p, int64_t dim, const Scalar& maxnorm);
Tensor slice_norms(const Tensor& v, int64_t order, int64_t dim);  // of all elements if dim is -1
Tensor fake_quantize_channels(const Tensor& input, const Tensor& scale, const Tensor& zero_point, int64_t axis,
                              int64_t quant_min, int64_t quant_max);

// Losses.
int64_t class_dim(const Tensor& input);
// |input - target|.
Tensor distance(const Tensor& input, const Tensor& target);
// Half the squared differences where below delta, which may be infinite; without reduction.
Tensor huber(const Tensor& input, const Tensor& target, double delta);
// The losses in the dtype of `like`, in which PyTorch stores them.
Tensor stored_as(const Tensor& losses, const Tensor& like);
Tensor reduce_loss(const Tensor& losses, std::string_view reduction);
Tensor apply_weight(const Tensor& losses, const Tensor& weight);
Tensor bce_with_logits(const Tensor& input, const Tensor& target, const Tensor& pos_weight);
Tensor kl_divergence(const Tensor& input, const Tensor& target, std::string_view reduction, bool log_target);
Tensor cosine_embedding(const Tensor& input1, const Tensor& input2, const Tensor& target, double margin,
                        std::string_view reduction);
Tensor poisson_loss(const Tensor& input, const Tensor& target, bool log_input, bool full, double eps);
Tensor gaussian_loss(const Tensor& input, const Tensor& target, const Tensor& var, bool full, double eps);
Tensor multi_margin(const Tensor& input, const Tensor& target, int64_t p, double margin, const Tensor& weight);
Tensor multilabel_margin(const Tensor& input, const Tensor& target);
Tensor triplet_margin(const Tensor& anchor, const Tensor& positive, const Tensor& negative, double margin, double p,
                      double eps, bool swap);

}  // namespace tt::composites
