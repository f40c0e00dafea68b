#include "client/nn/functional.h"

#include "client/api/creation.h"
#include "client/api/operators.h"
#include "client/api/session.h"

namespace teletensor::nn::functional {
namespace {

// "batchmean" is not a reduction of operators: Python divides the sum.
Tensor reduced_kl_div(const Tensor& input, const Tensor& target, const KLDivFuncOptions& options) {
  if (options.reduction() != "batchmean")
    return teletensor::kl_div(input, target, options.reduction(), options.log_target());
  return teletensor::kl_div(input, target, "sum", options.log_target()) / input.size(0);
}

}  // namespace

Tensor conv1d(const Tensor& input, const Tensor& weight, const Conv1dFuncOptions& o) {
  return teletensor::conv1d(input, weight, o.bias(), o.stride(), o.padding(), o.dilation(), o.groups());
}
Tensor conv2d(const Tensor& input, const Tensor& weight, const Conv2dFuncOptions& o) {
  return teletensor::conv2d(input, weight, o.bias(), o.stride(), o.padding(), o.dilation(), o.groups());
}
Tensor conv3d(const Tensor& input, const Tensor& weight, const Conv3dFuncOptions& o) {
  return teletensor::conv3d(input, weight, o.bias(), o.stride(), o.padding(), o.dilation(), o.groups());
}
Tensor max_pool2d(const Tensor& input, const MaxPool2dFuncOptions& o) {
  return ops::max_pool2d(input, o.kernel_size(), IntArrayRef(o.stride()), o.padding(), o.dilation(), o.ceil_mode());
}
Tensor max_pool3d(const Tensor& input, const MaxPool3dFuncOptions& o) {
  return teletensor::max_pool3d(input, o.kernel_size(), IntArrayRef(o.stride()), o.padding(), o.dilation(),
                                o.ceil_mode());
}
Tensor avg_pool2d(const Tensor& input, const AvgPool2dFuncOptions& o) {
  return teletensor::avg_pool2d(input, o.kernel_size(), IntArrayRef(o.stride()), o.padding(), o.ceil_mode(),
                                o.count_include_pad(), o.divisor_override());
}
Tensor avg_pool3d(const Tensor& input, const AvgPool3dFuncOptions& o) {
  return teletensor::avg_pool3d(input, o.kernel_size(), IntArrayRef(o.stride()), o.padding(), o.ceil_mode(),
                                o.count_include_pad(), o.divisor_override());
}
Tensor adaptive_avg_pool2d(const Tensor& input, const AdaptiveAvgPool2dFuncOptions& o) {
  return ops::adaptive_avg_pool2d(input, o.output_size());
}
Tensor softmax(const Tensor& input, const SoftmaxFuncOptions& o) { return input.softmax(o.dim(), o.dtype()); }
Tensor log_softmax(const Tensor& input, const LogSoftmaxFuncOptions& o) {
  return input.log_softmax(o.dim(), o.dtype());
}
Tensor dropout(const Tensor& input, const DropoutFuncOptions& o) {
  if (o.p() < 0 || o.p() > 1) {
    throw ValueError("dropout probability has to be between 0 and 1, but got " + std::to_string(o.p()));
  }
  return ops::dropout(input, o.p(), o.training());
}
Tensor layer_norm(const Tensor& input, const LayerNormFuncOptions& o) {
  return teletensor::layer_norm(input, o.normalized_shape(), o.weight(), o.bias(), o.eps());
}
Tensor group_norm(const Tensor& input, const GroupNormFuncOptions& o) {
  return teletensor::group_norm(input, o.num_groups(), o.weight(), o.bias(), o.eps());
}
Tensor batch_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                  const BatchNormFuncOptions& o) {
  return teletensor::batch_norm(input, running_mean, running_var, o.weight(), o.bias(), o.training(), o.momentum(),
                                o.eps());
}
Tensor normalize(const Tensor& input, const NormalizeFuncOptions& o) {
  return ops::normalize(input, o.p(), o.dim(), o.eps());
}

Tensor embedding(const Tensor& input, const Tensor& weight, const EmbeddingFuncOptions& o) {
  int64_t padding = o.padding_idx().value_or(-1);
  if (o.padding_idx()) {
    const int64_t rows = weight.size(0);
    if (padding < -rows || padding >= rows) throw ValueError("Padding_idx must be within num_embeddings");
    padding += padding < 0 ? rows : 0;
  }
  return teletensor::embedding(weight, input, padding);
}

Tensor embedding_bag(const Tensor& input, const Tensor& weight, const Tensor& offsets, const std::string& mode) {
  if (mode != "sum" && mode != "mean" && mode != "max") throw ValueError("mode has to be one of sum, mean or max");
  if (input.dim() == 2) {
    if (offsets.defined())
      throw ValueError("if input is 2D, then offsets has to be None, as input is treated is a mini-batch");
    const Tensor rows = teletensor::embedding(weight, input);
    if (mode == "max") return std::get<0>(rows.max(1));
    return mode == "sum" ? rows.sum(1) : rows.mean(1);
  }
  if (input.dim() != 1 || !offsets.defined() || offsets.dim() != 1) {
    throw ValueError("expected input with 2 dimensions, or input and offsets with 1 dimension");
  }
  if (mode == "max")
    throw NotImplementedError("[embedding_bag] mode 'max' with offsets; pass bags as rows of a matrix");
  const SessionGuard session(input.session());
  const Tensor position = arange(input.numel(), TensorOptions(kLong).device(input.device()));
  const Tensor bag = searchsorted(offsets.to(kLong), position, /*right=*/true) - 1;
  const Tensor rows = teletensor::embedding(weight, input);
  const Tensor sum = weight.new_zeros({offsets.numel(), weight.size(1)}).index_add(0, bag, rows);
  if (mode == "sum") return sum;
  const Tensor count = weight.new_zeros({offsets.numel()}).index_add(0, bag, weight.new_ones({input.numel()}));
  return sum / count.clamp_min(1).unsqueeze(1);
}

Tensor one_hot(const Tensor& input, int64_t num_classes) {
  if (num_classes < -1) throw RuntimeError("num_classes should be positive");
  return ops::one_hot(input, num_classes == -1 ? input.max().item<int64_t>() + 1 : num_classes);
}
Tensor pad(const Tensor& input, IntArrayRef pad, const Scalar& value) { return ops::pad(input, pad, value); }
Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const ScaledDotProductAttentionFuncOptions& o) {
  return ops::attention(query, key, value, o.attn_mask(), o.is_causal(), o.scale());
}

Tensor cross_entropy(const Tensor& input, const Tensor& target, const CrossEntropyFuncOptions& o) {
  return ops::cross_entropy(input, target, o.weight(), o.ignore_index(), o.reduction(), o.label_smoothing());
}
Tensor nll_loss(const Tensor& input, const Tensor& target, const NLLLossFuncOptions& o) {
  return ops::nll_loss(input, target, o.weight(), o.ignore_index(), o.reduction());
}
Tensor mse_loss(const Tensor& input, const Tensor& target, const MSELossFuncOptions& o) {
  return teletensor::mse_loss(input, target, o.reduction());
}
Tensor l1_loss(const Tensor& input, const Tensor& target, const L1LossFuncOptions& o) {
  return teletensor::l1_loss(input, target, o.reduction());
}
Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, const SmoothL1LossFuncOptions& o) {
  return teletensor::smooth_l1_loss(input, target, o.reduction(), o.beta());
}
Tensor huber_loss(const Tensor& input, const Tensor& target, const HuberLossFuncOptions& o) {
  return teletensor::huber_loss(input, target, o.reduction(), o.delta());
}
Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, const BinaryCrossEntropyFuncOptions& o) {
  return teletensor::binary_cross_entropy(input, target, o.weight(), o.reduction());
}
Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target,
                                        const BinaryCrossEntropyWithLogitsFuncOptions& o) {
  return teletensor::binary_cross_entropy_with_logits(input, target, o.weight(), o.reduction(), o.pos_weight());
}
Tensor kl_div(const Tensor& input, const Tensor& target, const KLDivFuncOptions& options) {
  return reduced_kl_div(input, target, options);
}

}  // namespace teletensor::nn::functional
