// Normalisations, dropout of channels, distances, cells and losses beyond those of layers.h and losses.h.
#pragma once

#include <string>
#include <tuple>
#include <vector>

#include "client/nn/functional.h"
#include "client/nn/layers.h"
#include "client/nn/module.h"
#include "client/nn/options.h"

namespace teletensor::nn {

struct InstanceNormOptions {
  InstanceNormOptions(int64_t num_features) : num_features_(num_features) {}  // NOLINT: as libtorch's
  TELETENSOR_ARG(int64_t, num_features);
  TELETENSOR_ARG(double, eps) = 1e-5;
  TELETENSOR_ARG(double, momentum) = 0.1;
  TELETENSOR_ARG(bool, affine) = false;
  TELETENSOR_ARG(bool, track_running_stats) = false;
};
struct LocalResponseNormOptions {
  LocalResponseNormOptions(int64_t size) : size_(size) {}  // NOLINT
  TELETENSOR_ARG(int64_t, size);
  TELETENSOR_ARG(double, alpha) = 1e-4;
  TELETENSOR_ARG(double, beta) = 0.75;
  TELETENSOR_ARG(double, k) = 1;
};
struct CosineSimilarityOptions {
  TELETENSOR_ARG(int64_t, dim) = 1;
  TELETENSOR_ARG(double, eps) = 1e-8;
};
struct PairwiseDistanceOptions {
  TELETENSOR_ARG(double, p) = 2;
  TELETENSOR_ARG(double, eps) = 1e-6;
  TELETENSOR_ARG(bool, keepdim) = false;
};
struct BilinearOptions {
  BilinearOptions(int64_t in1_features, int64_t in2_features, int64_t out_features)
      : in1_features_(in1_features), in2_features_(in2_features), out_features_(out_features) {}
  TELETENSOR_ARG(int64_t, in1_features);
  TELETENSOR_ARG(int64_t, in2_features);
  TELETENSOR_ARG(int64_t, out_features);
  TELETENSOR_ARG(bool, bias) = true;
};
struct PoissonNLLLossOptions {
  TELETENSOR_ARG(bool, log_input) = true;
  TELETENSOR_ARG(bool, full) = false;
  TELETENSOR_ARG(double, eps) = 1e-8;
  TELETENSOR_ARG(std::string, reduction) = "mean";
};
/// Of losses with a margin: hinge embedding (1), cosine embedding (0), margin ranking (0), multi-margin (1).
template <int kMargin>
struct MarginOptions {
  TELETENSOR_ARG(double, margin) = kMargin;
  TELETENSOR_ARG(std::string, reduction) = "mean";
};
using HingeEmbeddingLossOptions = MarginOptions<1>;
using CosineEmbeddingLossOptions = MarginOptions<0>;
using MarginRankingLossOptions = MarginOptions<0>;
using SoftMarginLossOptions = LossOptions;
struct TripletMarginLossOptions {
  TELETENSOR_ARG(double, margin) = 1;
  TELETENSOR_ARG(double, p) = 2;
  TELETENSOR_ARG(double, eps) = 1e-6;
  TELETENSOR_ARG(bool, swap) = false;
  TELETENSOR_ARG(std::string, reduction) = "mean";
};
struct MultiMarginLossOptions {
  TELETENSOR_ARG(int64_t, p) = 1;
  TELETENSOR_ARG(double, margin) = 1;
  TELETENSOR_ARG(Tensor, weight);
  TELETENSOR_ARG(std::string, reduction) = "mean";
};
struct CTCLossOptions {
  TELETENSOR_ARG(int64_t, blank) = 0;
  TELETENSOR_ARG(std::string, reduction) = "mean";
  TELETENSOR_ARG(bool, zero_infinity) = false;
};
struct RNNCellOptionsBase {
  RNNCellOptionsBase(int64_t input_size, int64_t hidden_size) : input_size_(input_size), hidden_size_(hidden_size) {}
  TELETENSOR_ARG(int64_t, input_size);
  TELETENSOR_ARG(int64_t, hidden_size);
  TELETENSOR_ARG(bool, bias) = true;
  TELETENSOR_ARG(std::string, nonlinearity) = "tanh";  // of RNNCell: "tanh" or "relu"
};
using RNNCellOptions = RNNCellOptionsBase;
using GRUCellOptions = RNNCellOptionsBase;
using LSTMCellOptions = RNNCellOptionsBase;

namespace functional {

struct InstanceNormFuncOptions {
  TELETENSOR_ARG(Tensor, running_mean);
  TELETENSOR_ARG(Tensor, running_var);
  TELETENSOR_ARG(Tensor, weight);
  TELETENSOR_ARG(Tensor, bias);
  TELETENSOR_ARG(bool, use_input_stats) = true;
  TELETENSOR_ARG(double, momentum) = 0.1;
  TELETENSOR_ARG(double, eps) = 1e-5;
};
using LocalResponseNormFuncOptions = LocalResponseNormOptions;
using CosineSimilarityFuncOptions = CosineSimilarityOptions;
using PairwiseDistanceFuncOptions = PairwiseDistanceOptions;
using CTCLossFuncOptions = CTCLossOptions;

/// Normalises each channel of each sample, and updates the running statistics if there are any.
Tensor instance_norm(const Tensor& input, const InstanceNormFuncOptions& options = {});
Tensor local_response_norm(const Tensor& input, const LocalResponseNormFuncOptions& options);
Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, const CosineSimilarityFuncOptions& options);
Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, const PairwiseDistanceFuncOptions& options);
/// Zero whole channels (dimension 1); alpha_dropout keeps the mean and variance of selu's outputs.
Tensor dropout2d(const Tensor& input, const DropoutFuncOptions& options = {});
Tensor dropout3d(const Tensor& input, const DropoutFuncOptions& options = {});
Tensor alpha_dropout(const Tensor& input, const DropoutFuncOptions& options = {});
Tensor feature_alpha_dropout(const Tensor& input, const DropoutFuncOptions& options = {});

Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, const PoissonNLLLossOptions& options = {});
Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target, const HingeEmbeddingLossOptions& options = {});
Tensor soft_margin_loss(const Tensor& input, const Tensor& target, const SoftMarginLossOptions& options = {});
Tensor multi_margin_loss(const Tensor& input, const Tensor& target, const MultiMarginLossOptions& options = {});
Tensor cosine_embedding_loss(const Tensor& x1, const Tensor& x2, const Tensor& target,
                             const CosineEmbeddingLossOptions& options = {});
Tensor margin_ranking_loss(const Tensor& x1, const Tensor& x2, const Tensor& target,
                           const MarginRankingLossOptions& options = {});
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletMarginLossOptions& options = {});
/// Connectionist temporal classification (Graves et al. 2006).
Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const std::vector<int64_t>& input_lengths,
                const std::vector<int64_t>& target_lengths, const CTCLossFuncOptions& options = {});

}  // namespace functional

class InstanceNormBase : public NormBase {
 public:
  using OptionsType = InstanceNormOptions;
  Tensor forward(const Tensor& input);
  InstanceNormOptions options;

 protected:
  /// `dim` is the number of dimensions of a batch; inputs without a batch have one less.
  InstanceNormBase(const InstanceNormOptions& options, const char* name, int64_t dim);

 private:
  const int64_t dim_;
};
#define TELETENSOR_INSTANCE_NORM(Name, dim)                                                \
  class Name##Impl : public InstanceNormBase {                                             \
   public:                                                                                 \
    explicit Name##Impl(const InstanceNormOptions& o) : InstanceNormBase(o, #Name, dim) {} \
  };                                                                                       \
  TELETENSOR_MODULE(Name)
TELETENSOR_INSTANCE_NORM(InstanceNorm1d, 3);
TELETENSOR_INSTANCE_NORM(InstanceNorm2d, 4);
TELETENSOR_INSTANCE_NORM(InstanceNorm3d, 5);
#undef TELETENSOR_INSTANCE_NORM

class LocalResponseNormImpl : public Module {
 public:
  using OptionsType = LocalResponseNormOptions;
  explicit LocalResponseNormImpl(const LocalResponseNormOptions& o) : Module("LocalResponseNorm"), options(o) {}
  Tensor forward(const Tensor& input) { return functional::local_response_norm(input, options); }
  LocalResponseNormOptions options;
};
TELETENSOR_MODULE(LocalResponseNorm);

#define TELETENSOR_DROPOUT(Name, function)                                                                         \
  class Name##Impl : public Module {                                                                               \
   public:                                                                                                         \
    using OptionsType = DropoutOptions;                                                                            \
    explicit Name##Impl(const DropoutOptions& o = {}) : Module(#Name), options(o) {}                               \
    Tensor forward(const Tensor& input) {                                                                          \
      return functional::function(input, functional::DropoutFuncOptions().p(options.p()).training(is_training())); \
    }                                                                                                              \
    DropoutOptions options;                                                                                        \
  };                                                                                                               \
  TELETENSOR_MODULE(Name)
TELETENSOR_DROPOUT(Dropout2d, dropout2d);
TELETENSOR_DROPOUT(Dropout3d, dropout3d);
TELETENSOR_DROPOUT(AlphaDropout, alpha_dropout);
TELETENSOR_DROPOUT(FeatureAlphaDropout, feature_alpha_dropout);
#undef TELETENSOR_DROPOUT

/// Declares a module of two inputs with options that applies a function of nn::functional.
#define TELETENSOR_OF_TWO(Name, Options, function)                                                   \
  class Name##Impl : public Module {                                                                 \
   public:                                                                                           \
    using OptionsType = Options;                                                                     \
    explicit Name##Impl(const Options& o = {}) : Module(#Name), options(o) {}                        \
    Tensor forward(const Tensor& a, const Tensor& b) { return functional::function(a, b, options); } \
    Options options;                                                                                 \
  };                                                                                                 \
  TELETENSOR_MODULE(Name)
TELETENSOR_OF_TWO(CosineSimilarity, CosineSimilarityOptions, cosine_similarity);
TELETENSOR_OF_TWO(PairwiseDistance, PairwiseDistanceOptions, pairwise_distance);
TELETENSOR_OF_TWO(PoissonNLLLoss, PoissonNLLLossOptions, poisson_nll_loss);
TELETENSOR_OF_TWO(HingeEmbeddingLoss, HingeEmbeddingLossOptions, hinge_embedding_loss);
TELETENSOR_OF_TWO(SoftMarginLoss, SoftMarginLossOptions, soft_margin_loss);
TELETENSOR_OF_TWO(MultiMarginLoss, MultiMarginLossOptions, multi_margin_loss);
#undef TELETENSOR_OF_TWO

#define TELETENSOR_OF_THREE(Name, Options, function)                          \
  class Name##Impl : public Module {                                          \
   public:                                                                    \
    using OptionsType = Options;                                              \
    explicit Name##Impl(const Options& o = {}) : Module(#Name), options(o) {} \
    Tensor forward(const Tensor& a, const Tensor& b, const Tensor& c) {       \
      return functional::function(a, b, c, options);                          \
    }                                                                         \
    Options options;                                                          \
  };                                                                          \
  TELETENSOR_MODULE(Name)
TELETENSOR_OF_THREE(CosineEmbeddingLoss, CosineEmbeddingLossOptions, cosine_embedding_loss);
TELETENSOR_OF_THREE(MarginRankingLoss, MarginRankingLossOptions, margin_ranking_loss);
TELETENSOR_OF_THREE(TripletMarginLoss, TripletMarginLossOptions, triplet_margin_loss);
#undef TELETENSOR_OF_THREE

class CTCLossImpl : public Module {
 public:
  using OptionsType = CTCLossOptions;
  explicit CTCLossImpl(const CTCLossOptions& o = {}) : Module("CTCLoss"), options(o) {}
  Tensor forward(const Tensor& log_probs, const Tensor& targets, const std::vector<int64_t>& input_lengths,
                 const std::vector<int64_t>& target_lengths) {
    return functional::ctc_loss(log_probs, targets, input_lengths, target_lengths, options);
  }
  CTCLossOptions options;
};
TELETENSOR_MODULE(CTCLoss);

/// x1^T A x2 + b for each output feature.
class BilinearImpl : public Module {
 public:
  using OptionsType = BilinearOptions;
  BilinearImpl(int64_t in1, int64_t in2, int64_t out) : BilinearImpl(BilinearOptions(in1, in2, out)) {}
  explicit BilinearImpl(const BilinearOptions& options);
  Tensor forward(const Tensor& x1, const Tensor& x2) { return functional::bilinear(x1, x2, weight, bias); }
  BilinearOptions options;
  Tensor weight, bias;
};
TELETENSOR_MODULE(Bilinear);

class PixelShuffleImpl : public Module {
 public:
  explicit PixelShuffleImpl(int64_t upscale_factor) : Module("PixelShuffle"), factor_(upscale_factor) {}
  Tensor forward(const Tensor& input) { return functional::pixel_shuffle(input, factor_); }

 private:
  const int64_t factor_;
};
TELETENSOR_MODULE(PixelShuffle);
class PixelUnshuffleImpl : public Module {
 public:
  explicit PixelUnshuffleImpl(int64_t downscale_factor) : Module("PixelUnshuffle"), factor_(downscale_factor) {}
  Tensor forward(const Tensor& input) { return functional::pixel_unshuffle(input, factor_); }

 private:
  const int64_t factor_;
};
TELETENSOR_MODULE(PixelUnshuffle);

/// One step of a recurrent layer.
class RNNCellBase : public Module {
 public:
  using OptionsType = RNNCellOptionsBase;
  void reset_parameters();
  RNNCellOptionsBase options;
  Tensor weight_ih, weight_hh, bias_ih, bias_hh;

 protected:
  RNNCellBase(const RNNCellOptionsBase& options, const char* name, int64_t gates);
  Tensor batched(const Tensor& input) const;
  Tensor state(const Tensor& given, const Tensor& input) const;
};
class RNNCellImpl : public RNNCellBase {
 public:
  RNNCellImpl(int64_t input_size, int64_t hidden_size) : RNNCellImpl(RNNCellOptions(input_size, hidden_size)) {}
  explicit RNNCellImpl(const RNNCellOptions& options);
  Tensor forward(const Tensor& input, const Tensor& hidden = Tensor());
};
TELETENSOR_MODULE(RNNCell);
class GRUCellImpl : public RNNCellBase {
 public:
  GRUCellImpl(int64_t input_size, int64_t hidden_size) : GRUCellImpl(GRUCellOptions(input_size, hidden_size)) {}
  explicit GRUCellImpl(const GRUCellOptions& options) : RNNCellBase(options, "GRUCell", 3) {}
  Tensor forward(const Tensor& input, const Tensor& hidden = Tensor());
};
TELETENSOR_MODULE(GRUCell);
class LSTMCellImpl : public RNNCellBase {
 public:
  LSTMCellImpl(int64_t input_size, int64_t hidden_size) : LSTMCellImpl(LSTMCellOptions(input_size, hidden_size)) {}
  explicit LSTMCellImpl(const LSTMCellOptions& options) : RNNCellBase(options, "LSTMCell", 4) {}
  std::tuple<Tensor, Tensor> forward(const Tensor& input, const std::tuple<Tensor, Tensor>& states = {});
};
TELETENSOR_MODULE(LSTMCell);

}  // namespace teletensor::nn
