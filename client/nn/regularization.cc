#include "client/nn/regularization.h"

#include <cmath>

#include "client/api/autograd.h"
#include "client/api/creation.h"
#include "client/api/operators.h"
#include "client/api/session.h"
#include "client/nn/init.h"

namespace teletensor::nn {
namespace functional {
namespace {

Tensor reduced(const Tensor& losses, const std::string& reduction) {
  if (reduction == "none") return losses;
  if (reduction == "mean") return losses.mean();
  if (reduction == "sum") return losses.sum();
  throw ValueError(reduction + " is not a valid value for reduction");
}

void check_probability(double p) {
  if (!(p >= 0 && p <= 1))
    throw ValueError("dropout probability has to be between 0 and 1, but got " + std::to_string(p));
}

// 1 with probability 1 - p, otherwise 0.
Tensor keep_mask(const Tensor& input, const std::vector<int64_t>& sizes, double p) {
  const SessionGuard session(input.session());
  return (rand(sizes, TensorOptions(kFloat).device(input.device())) >= p).to(input.dtype());
}

// The sizes of a mask of whole channels, which are dimension 1.
std::vector<int64_t> channels(const Tensor& input) {
  if (input.dim() < 2) throw RuntimeError("Feature dropout requires at least 2 dimensions in the input");
  std::vector<int64_t> sizes(static_cast<size_t>(input.dim()), 1);
  sizes[0] = input.size(0);
  sizes[1] = input.size(1);
  return sizes;
}

Tensor scaled_alpha_dropout(const Tensor& input, const DropoutFuncOptions& o, bool whole_channels) {
  const double p = o.p();
  check_probability(p);
  if (p == 0 || !o.training()) return input;
  if (p == 1) return input * 0;
  constexpr double kSaturated = -1.7580993408473766;  // selu's limit
  const double a = 1 / std::sqrt((1 - p) * (1 + p * kSaturated * kSaturated));
  const Tensor kept = keep_mask(input, whole_channels ? channels(input) : input.sizes().vec(), p);
  return (input * kept + kSaturated * (1 - kept)) * a - a * p * kSaturated;
}

}  // namespace

Tensor instance_norm(const Tensor& input, const InstanceNormFuncOptions& o) {
  if (o.running_mean().defined() != o.running_var().defined())
    throw ValueError("running_mean and running_var must either both be defined or neither be defined");
  if (!o.use_input_stats()) {
    if (!o.running_mean().defined())
      throw RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is false");
    return teletensor::batch_norm(input, o.running_mean(), o.running_var(), o.weight(), o.bias(), false, o.momentum(),
                                  o.eps());
  }
  if (input.dim() < 3) throw ValueError("Expected a batch of samples with channels and at least 1 spatial dimension");
  std::vector<int64_t> spatial;
  int64_t count = 1;
  for (int64_t d = 2; d < input.dim(); ++d) {
    spatial.push_back(d);
    count *= input.size(d);
  }
  if (count == 1)
    throw ValueError("Expected more than 1 spatial element when training, got input size " +
                     tt::to_string(input.sizes().span()));
  const Tensor result = teletensor::group_norm(input, input.size(1), o.weight(), o.bias(), o.eps());
  if (o.running_mean().defined()) {
    const NoGradGuard no_grad;
    const Tensor mean = input.mean(spatial), deviation = input - input.mean(spatial, true);
    const Tensor var = (deviation * deviation).sum(spatial) / (count - 1);
    o.running_mean().lerp_(mean.mean(0).to(o.running_mean().dtype()), o.momentum());
    o.running_var().lerp_(var.mean(0).to(o.running_var().dtype()), o.momentum());
  }
  return result;
}

Tensor local_response_norm(const Tensor& input, const LocalResponseNormFuncOptions& o) {
  if (input.dim() < 3) {
    throw ValueError("Expected 3D or higher dimensionality input (got " + std::to_string(input.dim()) + " dimensions)");
  }
  if (input.numel() == 0) return input;
  const Tensor squares = ops::pad((input * input).flatten(2).unsqueeze(1), {0, 0, o.size() / 2, (o.size() - 1) / 2});
  const Tensor means =
      teletensor::avg_pool2d(squares, {o.size(), 1}, IntArrayRef({1, 1})).squeeze(1).reshape(input.sizes());
  return input / (means * o.alpha() + o.k()).pow(o.beta());
}

Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, const CosineSimilarityFuncOptions& o) {
  return teletensor::cosine_similarity(x1, x2, o.dim(), o.eps());
}
Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, const PairwiseDistanceFuncOptions& o) {
  return teletensor::pairwise_distance(x1, x2, o.p(), o.eps(), o.keepdim());
}

Tensor dropout2d(const Tensor& input, const DropoutFuncOptions& o) {
  check_probability(o.p());
  if (o.p() == 0 || !o.training()) return input;
  if (o.p() == 1) return input * 0;
  return input * keep_mask(input, channels(input), o.p()) * (1 / (1 - o.p()));
}
Tensor dropout3d(const Tensor& input, const DropoutFuncOptions& o) {
  if (input.dim() == 5) return dropout2d(input, o);
  return dropout2d(input.unsqueeze(0), o).squeeze(0);
}
Tensor alpha_dropout(const Tensor& input, const DropoutFuncOptions& o) { return scaled_alpha_dropout(input, o, false); }
Tensor feature_alpha_dropout(const Tensor& input, const DropoutFuncOptions& o) {
  return scaled_alpha_dropout(input, o, true);
}

Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, const PoissonNLLLossOptions& o) {
  return ops::poisson_nll_loss(input, target, o.log_input(), o.full(), o.eps(), o.reduction());
}
Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target, const HingeEmbeddingLossOptions& o) {
  return ops::hinge_embedding_loss(input, target, o.margin(), o.reduction());
}
Tensor soft_margin_loss(const Tensor& input, const Tensor& target, const SoftMarginLossOptions& o) {
  return ops::soft_margin_loss(input, target, o.reduction());
}
Tensor multi_margin_loss(const Tensor& input, const Tensor& target, const MultiMarginLossOptions& o) {
  return ops::multi_margin_loss(input, target, o.p(), o.margin(), o.weight(), o.reduction());
}
Tensor cosine_embedding_loss(const Tensor& x1, const Tensor& x2, const Tensor& target,
                             const CosineEmbeddingLossOptions& o) {
  return ops::cosine_embedding_loss(x1, x2, target, o.margin(), o.reduction());
}
Tensor margin_ranking_loss(const Tensor& x1, const Tensor& x2, const Tensor& target,
                           const MarginRankingLossOptions& o) {
  return ops::margin_ranking_loss(x1, x2, target, o.margin(), o.reduction());
}
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletMarginLossOptions& o) {
  return ops::triplet_margin_loss(anchor, positive, negative, o.margin(), o.p(), o.eps(), o.swap(), o.reduction());
}

Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const std::vector<int64_t>& input_lengths,
                const std::vector<int64_t>& target_lengths, const CTCLossFuncOptions& o) {
  const bool single = log_probs.dim() == 2;
  const Tensor scores = single ? log_probs.unsqueeze(1) : log_probs;
  Tensor losses = std::get<0>(ops::ctc_loss_forward(scores, single ? targets.reshape({1, -1}) : targets, input_lengths,
                                                    target_lengths, o.blank()));
  if (o.zero_infinity()) losses = where(losses.isinf(), 0.0, losses);
  if (single && o.reduction() == "none") return losses.squeeze(0);
  if (o.reduction() != "mean") return reduced(losses, o.reduction());
  const SessionGuard session(log_probs.session());
  std::vector<double> counts;
  counts.reserve(target_lengths.size());
  for (const int64_t n : target_lengths) counts.push_back(static_cast<double>(std::max<int64_t>(n, 1)));
  return (losses / tensor(counts, losses.options())).mean();
}

}  // namespace functional

InstanceNormBase::InstanceNormBase(const InstanceNormOptions& options, const char* name, int64_t dim)
    : NormBase(name, options.num_features(), options.affine(), options.track_running_stats()),
      options(options),
      dim_(dim) {}
Tensor InstanceNormBase::forward(const Tensor& input) {
  if (input.dim() != dim_ && input.dim() != dim_ - 1) {
    throw ValueError("expected " + std::to_string(dim_ - 1) + "D or " + std::to_string(dim_) + "D input (got " +
                     std::to_string(input.dim()) + "D input)");
  }
  const bool single = input.dim() == dim_ - 1;
  const Tensor result = functional::instance_norm(single ? input.unsqueeze(0) : input,
                                                  functional::InstanceNormFuncOptions()
                                                      .running_mean(running_mean)
                                                      .running_var(running_var)
                                                      .weight(weight)
                                                      .bias(bias)
                                                      .use_input_stats(is_training() || !running_mean.defined())
                                                      .momentum(options.momentum())
                                                      .eps(options.eps()));
  return single ? result.squeeze(0) : result;
}

BilinearImpl::BilinearImpl(const BilinearOptions& options) : Module("Bilinear"), options(options) {
  weight =
      register_parameter("weight", empty({options.out_features(), options.in1_features(), options.in2_features()}));
  bias = register_parameter("bias", options.bias() ? empty(options.out_features()) : Tensor());
  const double bound = 1 / std::sqrt(static_cast<double>(options.in1_features()));
  init::uniform_(weight, -bound, bound);
  if (bias.defined()) init::uniform_(bias, -bound, bound);
}

RNNCellBase::RNNCellBase(const RNNCellOptionsBase& options, const char* name, int64_t gates)
    : Module(name), options(options) {
  const int64_t rows = gates * options.hidden_size();
  weight_ih = register_parameter("weight_ih", empty({rows, options.input_size()}));
  weight_hh = register_parameter("weight_hh", empty({rows, options.hidden_size()}));
  bias_ih = register_parameter("bias_ih", options.bias() ? empty(rows) : Tensor());
  bias_hh = register_parameter("bias_hh", options.bias() ? empty(rows) : Tensor());
  reset_parameters();
}
void RNNCellBase::reset_parameters() {
  const double bound = options.hidden_size() > 0 ? 1 / std::sqrt(static_cast<double>(options.hidden_size())) : 0;
  for (const Tensor& t : {weight_ih, weight_hh, bias_ih, bias_hh}) {
    if (t.defined()) init::uniform_(t, -bound, bound);
  }
}
Tensor RNNCellBase::batched(const Tensor& input) const {
  if (input.dim() != 1 && input.dim() != 2)
    throw ValueError(name() + ": Expected input to be 1D or 2D, got " + std::to_string(input.dim()) + "D instead");
  return input.dim() == 1 ? input.unsqueeze(0) : input;
}
Tensor RNNCellBase::state(const Tensor& given, const Tensor& input) const {
  if (!given.defined()) return input.new_zeros({batched(input).size(0), options.hidden_size()});
  return input.dim() == 1 && given.dim() == 1 ? given.unsqueeze(0) : given;
}

RNNCellImpl::RNNCellImpl(const RNNCellOptions& options) : RNNCellBase(options, "RNNCell", 1) {
  if (options.nonlinearity() != "tanh" && options.nonlinearity() != "relu")
    throw RuntimeError("Unknown nonlinearity: " + options.nonlinearity());
}
Tensor RNNCellImpl::forward(const Tensor& input, const Tensor& hidden) {
  const auto cell = options.nonlinearity() == "relu" ? rnn_relu_cell : rnn_tanh_cell;
  const Tensor next = cell(batched(input), state(hidden, input), weight_ih, weight_hh, bias_ih, bias_hh);
  return input.dim() == 1 ? next.squeeze(0) : next;
}
Tensor GRUCellImpl::forward(const Tensor& input, const Tensor& hidden) {
  const Tensor next = gru_cell(batched(input), state(hidden, input), weight_ih, weight_hh, bias_ih, bias_hh);
  return input.dim() == 1 ? next.squeeze(0) : next;
}
std::tuple<Tensor, Tensor> LSTMCellImpl::forward(const Tensor& input, const std::tuple<Tensor, Tensor>& states) {
  const Tensor h = state(std::get<0>(states), input), c = state(std::get<1>(states), input);
  const auto [next_h, next_c] = lstm_cell(batched(input), {h, c}, weight_ih, weight_hh, bias_ih, bias_hh);
  if (input.dim() == 2) return {next_h, next_c};
  return {next_h.squeeze(0), next_c.squeeze(0)};
}

}  // namespace teletensor::nn
