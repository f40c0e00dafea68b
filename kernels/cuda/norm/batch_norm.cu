// Batch normalisation over N x C x space: statistics of each channel, and the gradients.
#include "kernels/common/math/scalar_math.h"
#include "kernels/common/norm/norm_shape.h"
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch/channels.h"

namespace tt::cuda {
namespace {

// A running statistic: one number per channel, of any floating-point dtype and stride, or null.
struct RunningStatistic {
  Access access;
  int64_t stride;

  explicit RunningStatistic(const Tensor& t) : access(Weights(t).access), stride(t ? t.stride(0) : 0) {}
  TT_DEVICE void move(int64_t c, double momentum, double value) const {
    if (access.data) access.store(c * stride, (1 - momentum) * access.load<double>(c * stride) + momentum * value);
  }
};

// An element's difference from its channel's first element, and the square of the difference. The first element is
// close to the mean, so the sums stay small.
template <typename T>
struct MomentTerm {
  using C = AccumulateType<T>;
  const T* x;
  int64_t inner;

  TT_DEVICE C center(int64_t channel) const { return convert<C>(x[channel * inner]); }
  TT_DEVICE TwoSums<C> operator()(int64_t, int64_t channel, int64_t at) const {
    const C distance = convert<C>(x[at]) - center(channel);
    return {distance, distance * distance};
  }
};

template <typename T>
struct BatchStatistics {
  using C = AccumulateType<T>;
  MomentTerm<T> term;
  int64_t count;
  RunningStatistic running_mean, running_var;
  double momentum, eps;
  C* means;
  C* rstds;

  TT_DEVICE void operator()(int64_t c, const Sums& sums) const {
    double mean = 0, variance = 0;
    if (count > 0) {
      const double n = static_cast<double>(count), shift = sums.first / n;
      mean = static_cast<double>(term.center(c)) + shift;
      variance = math::maximum(sums.second / n - shift * shift, 0.0);
      running_mean.move(c, momentum, mean);
      running_var.move(c, momentum, variance * n / (n - 1));
    }
    means[c] = static_cast<C>(mean);
    rstds[c] = static_cast<C>(math::rsqrt(variance + eps));
  }
};

template <typename C>
void given_statistics(const Queue& queue, int64_t channels, Weights mean, Weights variance, double eps, C* means,
                      C* rstds) {
  for_each(queue, channels, [=] TT_DEVICE(int64_t c) {
    means[c] = mean.at(c, C(0));
    rstds[c] = static_cast<C>(math::rsqrt(variance.at(c, 1.0) + eps));
  });
}

template <typename T>
void normalize(const Queue& queue, const ChannelShape& shape, const T* x, const AccumulateType<T>* means,
               const AccumulateType<T>* rstds, Weights weight, Weights bias, T* y) {
  using C = AccumulateType<T>;
  for_each_in_channels(queue, shape, [=] TT_DEVICE(int64_t c, int64_t at) {
    const C scale = rstds[c] * weight.at(c, C(1));
    y[at] = convert<T>(scale * (convert<C>(x[at]) - means[c]) + bias.at(c, C(0)));
  });
}

template <typename T>
struct GradientTerm {
  using C = AccumulateType<T>;
  const T* g;
  const T* x;
  const C* means;

  TT_DEVICE TwoSums<C> operator()(int64_t, int64_t channel, int64_t at) const {
    const C grad = convert<C>(g[at]);
    return {grad, grad * (convert<C>(x[at]) - means[channel])};
  }
};

// dx = scale * g + slope * (x - mean) + constant.
template <typename C>
struct Line {
  C scale, slope, constant;
};

template <typename C>
struct ChannelGradients {
  int64_t count;
  bool training;
  Weights weight;
  const C* rstds;
  Access grad_weight, grad_bias;
  Line<C>* lines;

  TT_DEVICE void operator()(int64_t c, const Sums& sums) const {
    const double rstd = static_cast<double>(rstds[c]), n = static_cast<double>(count);
    const double scale = weight.at(c, 1.0) * rstd;
    grad_weight.store(c, sums.second * rstd);
    grad_bias.store(c, sums.first);
    lines[c] = {static_cast<C>(scale), static_cast<C>(training ? -scale * rstd * rstd * sums.second / n : 0),
                static_cast<C>(training ? -scale * sums.first / n : 0)};
  }
};

template <typename T>
void backward_input(const Queue& queue, const ChannelShape& shape, const T* g, const T* x,
                    const AccumulateType<T>* means, const Line<AccumulateType<T>>* lines, T* dx) {
  using C = AccumulateType<T>;
  for_each_in_channels(queue, shape, [=] TT_DEVICE(int64_t c, int64_t at) {
    const Line<C> line = lines[c];
    dx[at] = convert<T>(line.scale * convert<C>(g[at]) + line.slope * (convert<C>(x[at]) - means[c]) + line.constant);
  });
}

}  // namespace

void batch_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var, const Tensor& weight,
                const Tensor& bias, bool training, double momentum, double eps, Tensor& output, Tensor& mean,
                Tensor& rstd) {
  check_batch_norm(input, running_mean, running_var, weight, bias);
  const ChannelShape shape(input);
  const Tensor x = contiguous(input), w = contiguous(weight), b = contiguous(bias);
  const Tensor given_mean = training ? Tensor() : contiguous(running_mean);
  const Tensor given_var = training ? Tensor() : contiguous(running_var);
  const Queue queue = queue_of(output);
  with_floating(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    AccumulateType<T>*means = mean.data_as<AccumulateType<T>>(), *rstds = rstd.data_as<AccumulateType<T>>();
    if (training) {
      const MomentTerm<T> term{x.data_as<T>(), shape.inner};
      const BatchStatistics<T> finish{
          term,  shape.count(), RunningStatistic(running_mean), RunningStatistic(running_var), momentum, eps,
          means, rstds};
      sum_channels<AccumulateType<T>>(queue, shape, term, finish);
    } else {
      given_statistics(queue, shape.channels, Weights(given_mean), Weights(given_var), eps, means, rstds);
    }
    normalize(queue, shape, x.data_as<T>(), means, rstds, Weights(w), Weights(b), output.data_as<T>());
  });
}

void batch_norm_stats(const Tensor& input, double eps, Tensor& mean, Tensor& rstd) {
  const ChannelShape shape(input);
  const Tensor x = contiguous(input);
  const Queue queue = queue_of(mean);
  with_floating(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    const MomentTerm<T> term{x.data_as<T>(), shape.inner};
    const BatchStatistics<T> finish{term, shape.count(), RunningStatistic({}),    RunningStatistic({}),
                                    0,    eps,           mean.data_as<AccumulateType<T>>(), rstd.data_as<AccumulateType<T>>()};
    sum_channels<AccumulateType<T>>(queue, shape, term, finish);
  });
}

// In training, the gradient of an element depends on the whole channel through the channel's statistics. With given
// statistics, it depends on the element only.
void batch_norm_backward(const Tensor& grad, const Tensor& input, const Tensor& weight, const Tensor& mean,
                         const Tensor& rstd, bool training, Tensor& grad_input, Tensor& grad_weight,
                         Tensor& grad_bias) {
  check_batch_norm_backward(grad, input, weight, mean, rstd);
  const ChannelShape shape(input);
  const DType wide = accumulate_type(input.dtype());
  const Tensor x = contiguous(input), g = contiguous_as(grad, input.dtype()), w = contiguous(weight);
  const Tensor means = contiguous_as(mean, wide), rstds = contiguous_as(rstd, wide);
  const Tensor scratch = empty(Sizes{shape.channels, 3}, wide, input.device());
  const Queue queue = queue_of(grad_input);
  with_floating(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    using C = AccumulateType<T>;
    const T *gs = g.data_as<T>(), *xs = x.data_as<T>();
    const C* centers = means.data_as<C>();
    Line<C>* lines = scratch.data_as<Line<C>>();
    const ChannelGradients<C> finish{shape.count(),       training,          Weights(w), rstds.data_as<C>(),
                                     Access(grad_weight), Access(grad_bias), lines};
    sum_channels<C>(queue, shape, GradientTerm<T>{gs, xs, centers}, finish);
    backward_input(queue, shape, gs, xs, centers, lines, grad_input.data_as<T>());
  });
}

}  // namespace tt::cuda
