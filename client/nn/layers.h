// Layers with one input: linear, convolutions, normalisations, embeddings, dropout, pooling.
#pragma once

#include "client/nn/functional.h"
#include "client/nn/module.h"
#include "client/nn/options.h"

namespace teletensor::nn {

/// Returns its input.
class IdentityImpl : public Module {
 public:
  IdentityImpl() : Module("Identity") {}
  Tensor forward(const Tensor& input) { return input; }
};
TELETENSOR_MODULE(Identity);

class LinearImpl : public Module {
 public:
  using OptionsType = LinearOptions;
  LinearImpl(int64_t in_features, int64_t out_features) : LinearImpl(LinearOptions(in_features, out_features)) {}
  explicit LinearImpl(const LinearOptions& options);
  void reset_parameters();
  Tensor forward(const Tensor& input);
  void pretty_print(std::ostream& stream) const override;
  LinearOptions options;
  Tensor weight, bias;
};
TELETENSOR_MODULE(Linear);

/// A convolution over D dimensions.
template <size_t D>
class ConvNdImpl : public Module {
 public:
  using OptionsType = ConvOptions<D>;
  ConvNdImpl(int64_t in_channels, int64_t out_channels, ExpandingArray<D> kernel_size)
      : ConvNdImpl(ConvOptions<D>(in_channels, out_channels, kernel_size)) {}
  explicit ConvNdImpl(const ConvOptions<D>& options);
  void reset_parameters();
  Tensor forward(const Tensor& input);
  void pretty_print(std::ostream& stream) const override;
  ConvOptions<D> options;
  Tensor weight, bias;
};
using Conv1dImpl = ConvNdImpl<1>;
using Conv2dImpl = ConvNdImpl<2>;
using Conv3dImpl = ConvNdImpl<3>;
TELETENSOR_MODULE(Conv1d);
TELETENSOR_MODULE(Conv2d);
TELETENSOR_MODULE(Conv3d);

/// A transposed convolution over D dimensions.
template <size_t D>
class ConvTransposeNdImpl : public Module {
 public:
  using OptionsType = ConvTransposeOptions<D>;
  ConvTransposeNdImpl(int64_t in_channels, int64_t out_channels, ExpandingArray<D> kernel_size)
      : ConvTransposeNdImpl(ConvTransposeOptions<D>(in_channels, out_channels, kernel_size)) {}
  explicit ConvTransposeNdImpl(const ConvTransposeOptions<D>& options);
  void reset_parameters();
  Tensor forward(const Tensor& input);
  void pretty_print(std::ostream& stream) const override;
  ConvTransposeOptions<D> options;
  Tensor weight, bias;
};
using ConvTranspose1dImpl = ConvTransposeNdImpl<1>;
using ConvTranspose2dImpl = ConvTransposeNdImpl<2>;
using ConvTranspose3dImpl = ConvTransposeNdImpl<3>;
TELETENSOR_MODULE(ConvTranspose1d);
TELETENSOR_MODULE(ConvTranspose2d);
TELETENSOR_MODULE(ConvTranspose3d);

/// Batch normalisation of inputs with some numbers of dimensions.
/// The parameters and running statistics of BatchNorm and InstanceNorm; those that the options switch off are
/// undefined.
class NormBase : public Module {
 public:
  void reset_parameters();
  Tensor weight, bias, running_mean, running_var, num_batches_tracked;

 protected:
  NormBase(const char* name, int64_t num_features, bool affine, bool track_running_stats);
};
class BatchNormBase : public NormBase {
 public:
  using OptionsType = BatchNormOptions;
  Tensor forward(const Tensor& input);
  void pretty_print(std::ostream& stream) const override;
  BatchNormOptions options;

 protected:
  BatchNormBase(const BatchNormOptions& options, const char* name, int64_t least_dim, int64_t largest_dim);

 private:
  const int64_t least_dim_, largest_dim_;
};
class BatchNorm1dImpl : public BatchNormBase {
 public:
  explicit BatchNorm1dImpl(const BatchNormOptions& options) : BatchNormBase(options, "BatchNorm1d", 2, 3) {}
};
class BatchNorm2dImpl : public BatchNormBase {
 public:
  explicit BatchNorm2dImpl(const BatchNormOptions& options) : BatchNormBase(options, "BatchNorm2d", 4, 4) {}
};
class BatchNorm3dImpl : public BatchNormBase {
 public:
  explicit BatchNorm3dImpl(const BatchNormOptions& options) : BatchNormBase(options, "BatchNorm3d", 5, 5) {}
};
TELETENSOR_MODULE(BatchNorm1d);
TELETENSOR_MODULE(BatchNorm2d);
TELETENSOR_MODULE(BatchNorm3d);

class LayerNormImpl : public Module {
 public:
  using OptionsType = LayerNormOptions;
  explicit LayerNormImpl(const LayerNormOptions& options);
  explicit LayerNormImpl(std::vector<int64_t> normalized_shape)
      : LayerNormImpl(LayerNormOptions(std::move(normalized_shape))) {}
  void reset_parameters();
  Tensor forward(const Tensor& input);
  void pretty_print(std::ostream& stream) const override;
  LayerNormOptions options;
  Tensor weight, bias;
};
TELETENSOR_MODULE(LayerNorm);

class GroupNormImpl : public Module {
 public:
  using OptionsType = GroupNormOptions;
  GroupNormImpl(int64_t num_groups, int64_t num_channels) : GroupNormImpl(GroupNormOptions(num_groups, num_channels)) {}
  explicit GroupNormImpl(const GroupNormOptions& options);
  void reset_parameters();
  Tensor forward(const Tensor& input);
  void pretty_print(std::ostream& stream) const override;
  GroupNormOptions options;
  Tensor weight, bias;
};
TELETENSOR_MODULE(GroupNorm);

class EmbeddingImpl : public Module {
 public:
  using OptionsType = EmbeddingOptions;
  EmbeddingImpl(int64_t num_embeddings, int64_t embedding_dim)
      : EmbeddingImpl(EmbeddingOptions(num_embeddings, embedding_dim)) {}
  explicit EmbeddingImpl(const EmbeddingOptions& options);
  void reset_parameters();
  Tensor forward(const Tensor& indices);
  void pretty_print(std::ostream& stream) const override;
  EmbeddingOptions options;
  Tensor weight;
};
TELETENSOR_MODULE(Embedding);

class EmbeddingBagImpl : public Module {
 public:
  using OptionsType = EmbeddingBagOptions;
  EmbeddingBagImpl(int64_t num_embeddings, int64_t embedding_dim)
      : EmbeddingBagImpl(EmbeddingBagOptions(num_embeddings, embedding_dim)) {}
  explicit EmbeddingBagImpl(const EmbeddingBagOptions& options);
  void reset_parameters();
  Tensor forward(const Tensor& indices, const Tensor& offsets = Tensor());
  void pretty_print(std::ostream& stream) const override;
  EmbeddingBagOptions options;
  Tensor weight;
};
TELETENSOR_MODULE(EmbeddingBag);

class DropoutImpl : public Module {
 public:
  using OptionsType = DropoutOptions;
  explicit DropoutImpl(const DropoutOptions& options = {});
  Tensor forward(const Tensor& input);
  void pretty_print(std::ostream& stream) const override;
  DropoutOptions options;
};
TELETENSOR_MODULE(Dropout);

/// Declares a module with options that applies a function of nn::functional.
#define TELETENSOR_POOL(Name, Options, function)                                         \
  class Name##Impl : public Module {                                                     \
   public:                                                                               \
    using OptionsType = Options;                                                         \
    explicit Name##Impl(const Options& options) : Module(#Name), options(options) {}     \
    Tensor forward(const Tensor& input) { return functional::function(input, options); } \
    Options options;                                                                     \
  };                                                                                     \
  TELETENSOR_MODULE(Name)

TELETENSOR_POOL(MaxPool2d, MaxPool2dOptions, max_pool2d);
TELETENSOR_POOL(MaxPool3d, MaxPool3dOptions, max_pool3d);
TELETENSOR_POOL(AvgPool2d, AvgPool2dOptions, avg_pool2d);
TELETENSOR_POOL(AvgPool3d, AvgPool3dOptions, avg_pool3d);
TELETENSOR_POOL(AdaptiveAvgPool2d, AdaptiveAvgPool2dOptions, adaptive_avg_pool2d);
#undef TELETENSOR_POOL

class FlattenImpl : public Module {
 public:
  using OptionsType = FlattenOptions;
  explicit FlattenImpl(const FlattenOptions& options = {}) : Module("Flatten"), options(options) {}
  Tensor forward(const Tensor& input) { return input.flatten(options.start_dim(), options.end_dim()); }
  FlattenOptions options;
};
TELETENSOR_MODULE(Flatten);

}  // namespace teletensor::nn
