#include "client/nn/layers.h"

#include <cmath>
#include <ostream>

#include "client/api/creation.h"
#include "client/nn/init.h"

namespace teletensor::nn {
namespace {

// PyTorch's initial values of linear layers and convolutions.
void reset_weight_and_bias(const Tensor& weight, const Tensor& bias) {
  init::kaiming_uniform_(weight, std::sqrt(5.0));
  if (!bias.defined()) return;
  double fan_in = 1;
  for (int64_t dim = 1; dim < weight.dim(); ++dim) fan_in *= static_cast<double>(weight.size(dim));
  const double bound = fan_in > 0 ? 1 / std::sqrt(fan_in) : 0;
  init::uniform_(bias, -bound, bound);
}

void reset_scale_and_shift(const Tensor& weight, const Tensor& bias) {
  if (!weight.defined()) return;
  init::ones_(weight);
  init::zeros_(bias);
}

template <size_t D>
std::vector<int64_t> weight_sizes(int64_t first, int64_t second, const ExpandingArray<D>& kernel) {
  std::vector<int64_t> sizes = {first, second};
  for (size_t i = 0; i < D; ++i) sizes.push_back(kernel[i]);
  return sizes;
}

void check_groups(int64_t in, int64_t out, int64_t groups) {
  if (groups <= 0) throw ValueError("groups must be a positive integer");
  if (in % groups != 0) throw ValueError("in_channels must be divisible by groups");
  if (out % groups != 0) throw ValueError("out_channels must be divisible by groups");
}

const char* text(bool value) { return value ? "true" : "false"; }

}  // namespace

LinearImpl::LinearImpl(const LinearOptions& options) : Module("Linear"), options(options) {
  weight = register_parameter("weight", empty({options.out_features(), options.in_features()}));
  bias = register_parameter("bias", options.bias() ? empty(options.out_features()) : Tensor());
  reset_parameters();
}
void LinearImpl::reset_parameters() { reset_weight_and_bias(weight, bias); }
Tensor LinearImpl::forward(const Tensor& input) { return linear(input, weight, bias); }
void LinearImpl::pretty_print(std::ostream& stream) const {
  stream << "Linear(in_features=" << options.in_features() << ", out_features=" << options.out_features()
         << ", bias=" << text(options.bias()) << ')';
}

template <size_t D>
ConvNdImpl<D>::ConvNdImpl(const ConvOptions<D>& options) : Module("Conv" + std::to_string(D) + "d"), options(options) {
  check_groups(options.in_channels(), options.out_channels(), options.groups());
  weight = register_parameter(
      "weight", teletensor::empty(weight_sizes<D>(options.out_channels(), options.in_channels() / options.groups(),
                                                  options.kernel_size())));
  bias = register_parameter("bias", options.bias() ? empty(options.out_channels()) : Tensor());
  reset_parameters();
}
template <size_t D>
void ConvNdImpl<D>::reset_parameters() {
  reset_weight_and_bias(weight, bias);
}
template <size_t D>
Tensor ConvNdImpl<D>::forward(const Tensor& input) {
  const auto& o = options;
  if constexpr (D == 1) return conv1d(input, weight, bias, o.stride(), o.padding(), o.dilation(), o.groups());
  if constexpr (D == 2) return conv2d(input, weight, bias, o.stride(), o.padding(), o.dilation(), o.groups());
  if constexpr (D == 3) return conv3d(input, weight, bias, o.stride(), o.padding(), o.dilation(), o.groups());
}
template <size_t D>
void ConvNdImpl<D>::pretty_print(std::ostream& stream) const {
  stream << name() << '(' << options.in_channels() << ", " << options.out_channels()
         << ", kernel_size=" << IntArrayRef(options.kernel_size()) << ", stride=" << IntArrayRef(options.stride())
         << ", padding=" << IntArrayRef(options.padding()) << ')';
}
template class ConvNdImpl<1>;
template class ConvNdImpl<2>;
template class ConvNdImpl<3>;

template <size_t D>
ConvTransposeNdImpl<D>::ConvTransposeNdImpl(const ConvTransposeOptions<D>& options)
    : Module("ConvTranspose" + std::to_string(D) + "d"), options(options) {
  check_groups(options.in_channels(), options.out_channels(), options.groups());
  weight = register_parameter(
      "weight", teletensor::empty(weight_sizes<D>(options.in_channels(), options.out_channels() / options.groups(),
                                                  options.kernel_size())));
  bias = register_parameter("bias", options.bias() ? empty(options.out_channels()) : Tensor());
  reset_parameters();
}
template <size_t D>
void ConvTransposeNdImpl<D>::reset_parameters() {
  reset_weight_and_bias(weight, bias);
}
template <size_t D>
Tensor ConvTransposeNdImpl<D>::forward(const Tensor& input) {
  const auto& o = options;
  const auto call = [&](auto function) {
    return function(input, weight, bias, o.stride(), o.padding(), o.output_padding(), o.groups(), o.dilation());
  };
  if constexpr (D == 1) return call(conv_transpose1d);
  if constexpr (D == 2) return call(conv_transpose2d);
  if constexpr (D == 3) return call(conv_transpose3d);
}
template <size_t D>
void ConvTransposeNdImpl<D>::pretty_print(std::ostream& stream) const {
  stream << name() << '(' << options.in_channels() << ", " << options.out_channels()
         << ", kernel_size=" << IntArrayRef(options.kernel_size()) << ", stride=" << IntArrayRef(options.stride())
         << ')';
}
template class ConvTransposeNdImpl<1>;
template class ConvTransposeNdImpl<2>;
template class ConvTransposeNdImpl<3>;

NormBase::NormBase(const char* name, int64_t num_features, bool affine, bool track_running_stats) : Module(name) {
  weight = register_parameter("weight", affine ? ones(num_features) : Tensor());
  bias = register_parameter("bias", affine ? zeros(num_features) : Tensor());
  running_mean = register_buffer("running_mean", track_running_stats ? zeros(num_features) : Tensor());
  running_var = register_buffer("running_var", track_running_stats ? ones(num_features) : Tensor());
  num_batches_tracked = register_buffer("num_batches_tracked", track_running_stats ? zeros({}, kLong) : Tensor());
}
void NormBase::reset_parameters() {
  reset_scale_and_shift(weight, bias);
  if (!running_mean.defined()) return;
  running_mean.zero_();
  running_var.fill_(1);
  num_batches_tracked.zero_();
}

BatchNormBase::BatchNormBase(const BatchNormOptions& options, const char* name, int64_t least_dim, int64_t largest_dim)
    : NormBase(name, options.num_features(), options.affine(), options.track_running_stats()),
      options(options),
      least_dim_(least_dim),
      largest_dim_(largest_dim) {}
Tensor BatchNormBase::forward(const Tensor& input) {
  if (input.dim() < least_dim_ || input.dim() > largest_dim_) {
    throw ValueError("expected " + std::to_string(least_dim_) +
                     (least_dim_ == largest_dim_ ? "" : "D or " + std::to_string(largest_dim_)) + "D input (got " +
                     std::to_string(input.dim()) + "D input)");
  }
  double momentum = options.momentum().value_or(0);
  if (is_training() && running_mean.defined()) {
    num_batches_tracked.add_(1);
    if (!options.momentum()) momentum = 1 / num_batches_tracked.item<double>();  // a cumulative average, which waits
  }
  const bool training = is_training() || !running_mean.defined();
  return batch_norm(input, running_mean, running_var, weight, bias, training, momentum, options.eps());
}
void BatchNormBase::pretty_print(std::ostream& stream) const {
  stream << name() << '(' << options.num_features() << ", eps=" << options.eps()
         << ", affine=" << text(options.affine()) << ')';
}

LayerNormImpl::LayerNormImpl(const LayerNormOptions& options) : Module("LayerNorm"), options(options) {
  const bool affine = options.elementwise_affine();
  weight = register_parameter("weight", affine ? teletensor::ones(options.normalized_shape()) : Tensor());
  bias = register_parameter("bias", affine ? teletensor::zeros(options.normalized_shape()) : Tensor());
}
void LayerNormImpl::reset_parameters() { reset_scale_and_shift(weight, bias); }
Tensor LayerNormImpl::forward(const Tensor& input) {
  return layer_norm(input, options.normalized_shape(), weight, bias, options.eps());
}
void LayerNormImpl::pretty_print(std::ostream& stream) const {
  stream << "LayerNorm(" << IntArrayRef(options.normalized_shape()) << ", eps=" << options.eps() << ')';
}

GroupNormImpl::GroupNormImpl(const GroupNormOptions& options) : Module("GroupNorm"), options(options) {
  const bool affine = options.affine();
  weight = register_parameter("weight", affine ? ones(options.num_channels()) : Tensor());
  bias = register_parameter("bias", affine ? zeros(options.num_channels()) : Tensor());
}
void GroupNormImpl::reset_parameters() { reset_scale_and_shift(weight, bias); }
Tensor GroupNormImpl::forward(const Tensor& input) {
  return group_norm(input, options.num_groups(), weight, bias, options.eps());
}
void GroupNormImpl::pretty_print(std::ostream& stream) const {
  stream << "GroupNorm(" << options.num_groups() << ", " << options.num_channels() << ')';
}

EmbeddingImpl::EmbeddingImpl(const EmbeddingOptions& options) : Module("Embedding"), options(options) {
  weight = register_parameter("weight", empty({options.num_embeddings(), options.embedding_dim()}));
  reset_parameters();
}
void EmbeddingImpl::reset_parameters() {
  init::normal_(weight);
  if (options.padding_idx()) init::zeros_(weight[*options.padding_idx()].detach());
}
Tensor EmbeddingImpl::forward(const Tensor& indices) {
  return functional::embedding(indices, weight, functional::EmbeddingFuncOptions().padding_idx(options.padding_idx()));
}
void EmbeddingImpl::pretty_print(std::ostream& stream) const {
  stream << "Embedding(" << options.num_embeddings() << ", " << options.embedding_dim() << ')';
}

EmbeddingBagImpl::EmbeddingBagImpl(const EmbeddingBagOptions& options) : Module("EmbeddingBag"), options(options) {
  weight = register_parameter("weight", empty({options.num_embeddings(), options.embedding_dim()}));
  reset_parameters();
}
void EmbeddingBagImpl::reset_parameters() { init::normal_(weight); }
Tensor EmbeddingBagImpl::forward(const Tensor& indices, const Tensor& offsets) {
  return functional::embedding_bag(indices, weight, offsets, options.mode());
}
void EmbeddingBagImpl::pretty_print(std::ostream& stream) const {
  stream << "EmbeddingBag(" << options.num_embeddings() << ", " << options.embedding_dim()
         << ", mode=" << options.mode() << ')';
}

DropoutImpl::DropoutImpl(const DropoutOptions& options) : Module("Dropout"), options(options) {
  if (options.p() < 0 || options.p() > 1) {
    throw ValueError("dropout probability has to be between 0 and 1, but got " + std::to_string(options.p()));
  }
}
Tensor DropoutImpl::forward(const Tensor& input) {
  return functional::dropout(input, functional::DropoutFuncOptions().p(options.p()).training(is_training()));
}
void DropoutImpl::pretty_print(std::ostream& stream) const { stream << "Dropout(p=" << options.p() << ')'; }

}  // namespace teletensor::nn
