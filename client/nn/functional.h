// nn::functional: layers and losses as functions, with options as libtorch's.
#pragma once

#include "client/api/functions.h"
#include "client/nn/options.h"

namespace teletensor::nn::functional {

using teletensor::adaptive_max_pool2d;
using teletensor::bilinear;
using teletensor::celu;
using teletensor::cosine_similarity;
using teletensor::elu;
using teletensor::gelu;
using teletensor::glu;
using teletensor::hardsigmoid;
using teletensor::hardswish;
using teletensor::hardtanh;
using teletensor::leaky_relu;
using teletensor::linear;
using teletensor::logsigmoid;
using teletensor::mish;
using teletensor::pairwise_distance;
using teletensor::pixel_shuffle;
using teletensor::pixel_unshuffle;
using teletensor::prelu;
using teletensor::relu;
using teletensor::relu6;
using teletensor::selu;
using teletensor::sigmoid;
using teletensor::silu;
using teletensor::softplus;
using teletensor::softsign;
using teletensor::tanh;
using teletensor::tanhshrink;
using teletensor::threshold;

/// Options of a convolution whose weight is given.
template <size_t D>
struct ConvFuncOptions {
  TELETENSOR_ARG(Tensor, bias);
  TELETENSOR_ARG(ExpandingArray<D>, stride) = 1;
  TELETENSOR_ARG(ExpandingArray<D>, padding) = 0;
  TELETENSOR_ARG(ExpandingArray<D>, dilation) = 1;
  TELETENSOR_ARG(int64_t, groups) = 1;
};
using Conv1dFuncOptions = ConvFuncOptions<1>;
using Conv2dFuncOptions = ConvFuncOptions<2>;
using Conv3dFuncOptions = ConvFuncOptions<3>;
using MaxPool2dFuncOptions = MaxPool2dOptions;
using MaxPool3dFuncOptions = MaxPool3dOptions;
using AvgPool2dFuncOptions = AvgPool2dOptions;
using AvgPool3dFuncOptions = AvgPool3dOptions;
using AdaptiveAvgPool2dFuncOptions = AdaptiveAvgPool2dOptions;
using CrossEntropyFuncOptions = CrossEntropyLossOptions;
using NLLLossFuncOptions = NLLLossOptions;
using MSELossFuncOptions = LossOptions;
using L1LossFuncOptions = LossOptions;
using SmoothL1LossFuncOptions = SmoothL1LossOptions;
using HuberLossFuncOptions = HuberLossOptions;
using BinaryCrossEntropyFuncOptions = BCELossOptions;
using BinaryCrossEntropyWithLogitsFuncOptions = BCEWithLogitsLossOptions;
using KLDivFuncOptions = KLDivLossOptions;

struct SoftmaxFuncOptions {
  SoftmaxFuncOptions(int64_t dim) : dim_(dim) {}  // NOLINT: as libtorch's
  TELETENSOR_ARG(int64_t, dim);
  TELETENSOR_ARG(std::optional<Dtype>, dtype) = std::nullopt;
};
using LogSoftmaxFuncOptions = SoftmaxFuncOptions;

struct DropoutFuncOptions {
  TELETENSOR_ARG(double, p) = 0.5;
  TELETENSOR_ARG(bool, training) = true;
};
struct LayerNormFuncOptions {
  LayerNormFuncOptions(std::vector<int64_t> normalized_shape)
      : normalized_shape_(std::move(normalized_shape)) {}  // NOLINT
  TELETENSOR_ARG(std::vector<int64_t>, normalized_shape);
  TELETENSOR_ARG(Tensor, weight);
  TELETENSOR_ARG(Tensor, bias);
  TELETENSOR_ARG(double, eps) = 1e-5;
};
struct GroupNormFuncOptions {
  GroupNormFuncOptions(int64_t num_groups) : num_groups_(num_groups) {}  // NOLINT
  TELETENSOR_ARG(int64_t, num_groups);
  TELETENSOR_ARG(Tensor, weight);
  TELETENSOR_ARG(Tensor, bias);
  TELETENSOR_ARG(double, eps) = 1e-5;
};
struct BatchNormFuncOptions {
  TELETENSOR_ARG(Tensor, weight);
  TELETENSOR_ARG(Tensor, bias);
  TELETENSOR_ARG(bool, training) = false;
  TELETENSOR_ARG(double, momentum) = 0.1;
  TELETENSOR_ARG(double, eps) = 1e-5;
};
struct NormalizeFuncOptions {
  TELETENSOR_ARG(double, p) = 2;
  TELETENSOR_ARG(int64_t, dim) = 1;
  TELETENSOR_ARG(double, eps) = 1e-12;
};
struct EmbeddingFuncOptions {
  TELETENSOR_ARG(std::optional<int64_t>, padding_idx) = std::nullopt;
};
struct ScaledDotProductAttentionFuncOptions {
  TELETENSOR_ARG(Tensor, attn_mask);
  TELETENSOR_ARG(bool, is_causal) = false;
  TELETENSOR_ARG(std::optional<double>, scale) = std::nullopt;
};

Tensor conv1d(const Tensor& input, const Tensor& weight, const Conv1dFuncOptions& options = {});
Tensor conv2d(const Tensor& input, const Tensor& weight, const Conv2dFuncOptions& options = {});
Tensor conv3d(const Tensor& input, const Tensor& weight, const Conv3dFuncOptions& options = {});
Tensor max_pool2d(const Tensor& input, const MaxPool2dFuncOptions& options);
Tensor max_pool3d(const Tensor& input, const MaxPool3dFuncOptions& options);
Tensor avg_pool2d(const Tensor& input, const AvgPool2dFuncOptions& options);
Tensor avg_pool3d(const Tensor& input, const AvgPool3dFuncOptions& options);
Tensor adaptive_avg_pool2d(const Tensor& input, const AdaptiveAvgPool2dFuncOptions& options);
Tensor softmax(const Tensor& input, const SoftmaxFuncOptions& options);
Tensor log_softmax(const Tensor& input, const LogSoftmaxFuncOptions& options);
Tensor dropout(const Tensor& input, const DropoutFuncOptions& options = {});
Tensor layer_norm(const Tensor& input, const LayerNormFuncOptions& options);
Tensor group_norm(const Tensor& input, const GroupNormFuncOptions& options);
Tensor batch_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                  const BatchNormFuncOptions& options = {});
Tensor normalize(const Tensor& input, const NormalizeFuncOptions& options = {});
/// The rows of `weight` at the positions in `input`. The gradient of padding_idx's row is zero.
Tensor embedding(const Tensor& input, const Tensor& weight, const EmbeddingFuncOptions& options = {});
/// Sums, means or maxima of the rows of each bag: a row of a matrix `input`, or the positions from an offset to the
/// next.
Tensor embedding_bag(const Tensor& input, const Tensor& weight, const Tensor& offsets = Tensor(),
                     const std::string& mode = "mean");
/// Classes as rows with a single one. `num_classes` -1: one more than the largest, which waits.
Tensor one_hot(const Tensor& input, int64_t num_classes = -1);
/// Pads with a constant; `pad` has two numbers per dimension, the last dimension first.
Tensor pad(const Tensor& input, IntArrayRef pad, const Scalar& value = 0);
Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const ScaledDotProductAttentionFuncOptions& options = {});

Tensor cross_entropy(const Tensor& input, const Tensor& target, const CrossEntropyFuncOptions& options = {});
Tensor nll_loss(const Tensor& input, const Tensor& target, const NLLLossFuncOptions& options = {});
Tensor mse_loss(const Tensor& input, const Tensor& target, const MSELossFuncOptions& options = {});
Tensor l1_loss(const Tensor& input, const Tensor& target, const L1LossFuncOptions& options = {});
Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, const SmoothL1LossFuncOptions& options = {});
Tensor huber_loss(const Tensor& input, const Tensor& target, const HuberLossFuncOptions& options = {});
Tensor binary_cross_entropy(const Tensor& input, const Tensor& target,
                            const BinaryCrossEntropyFuncOptions& options = {});
Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target,
                                        const BinaryCrossEntropyWithLogitsFuncOptions& options = {});
Tensor kl_div(const Tensor& input, const Tensor& target, const KLDivFuncOptions& options = {});

}  // namespace teletensor::nn::functional
