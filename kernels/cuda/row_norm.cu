#include "kernels/cuda/row_norm.h"

#include "kernels/common/operands.h"
#include "kernels/common/scalar_math.h"
#include "kernels/cuda/channels.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/row.h"

namespace tt::cuda {
namespace {

// What is known of each row; means are null where rows are not centred.
template <typename C>
struct Statistics {
  C* means;
  C* rstds;

  Statistics(const Tensor& mean, const Tensor& rstd)
      : means(mean ? mean.data_as<C>() : nullptr), rstds(rstd.data_as<C>()) {}
  TT_FUNCTION C mean(int64_t row) const { return means ? means[row] : C(0); }
};

template <typename T>
void forward(const Queue& queue, RowNorm shape, const T* x, Weights weight, Weights bias, double eps, T* y,
             Statistics<Wide<T>> statistics) {
  using C = Wide<T>;
  for_each_group(queue, shape.rows, shape.n(), [=] TT_DEVICE(Group& group) {
    const int64_t r = group.index(), at = r * shape.n(), first = shape.first_channel(r);
    const C n = static_cast<C>(shape.n());
    const auto load = [=](int64_t i) { return convert<C>(x[at + i]); };
    const Row<C, decltype(load)> row(group, shape.n(), load);
    C mean = 0, squares = 0;
    if (statistics.means) {
      row.each([&](int64_t, C value) { mean += value; });
      mean = group.reduce(mean, Add()) / n;
    }
    row.each([&](int64_t, C value) { squares += (value - mean) * (value - mean); });
    const C rstd = math::rsqrt(group.reduce(squares, Add()) / n + static_cast<C>(eps));
    row.each([&](int64_t i, C value) {
      const int64_t c = shape.channel(first, i);
      y[at + i] = convert<T>((value - mean) * rstd * weight.at(c, C(1)) + bias.at(c, C(0)));
    });
    if (group.rank() == 0) {
      if (statistics.means) statistics.means[r] = mean;
      statistics.rstds[r] = rstd;
    }
  });
}

template <typename T>
void backward_input(const Queue& queue, RowNorm shape, const T* g, const T* x, Weights weight,
                    Statistics<Wide<T>> statistics, T* dx) {
  using C = Wide<T>;
  for_each_group(queue, shape.rows, shape.n(), [=] TT_DEVICE(Group& group) {
    const int64_t r = group.index(), at = r * shape.n(), first = shape.first_channel(r);
    const C mean = statistics.mean(r), rstd = statistics.rstds[r], n = static_cast<C>(shape.n());
    const auto load = [=](int64_t i) { return convert<C>(g[at + i]) * weight.at(shape.channel(first, i), C(1)); };
    const Row<C, decltype(load)> row(group, shape.n(), load);
    TwoSums<C> sums;
    row.each([&](int64_t i, C value) { sums += {value, value * (convert<C>(x[at + i]) - mean)}; });
    sums = group.reduce(sums, Add());
    const C slope = -rstd * rstd * rstd * sums.second / n;
    const C constant = statistics.means ? -rstd * sums.first / n : C(0);
    row.each([&](int64_t i, C value) {
      dx[at + i] = convert<T>(rstd * value + slope * (convert<C>(x[at + i]) - mean) + constant);
    });
  });
}

// An element's share in its channel's gradients: of the weight, then of the bias.
template <typename T>
struct AffineTerm {
  using C = Wide<T>;
  RowNorm shape;
  const T* g;
  const T* x;
  Statistics<C> statistics;

  TT_DEVICE TwoSums<C> operator()(int64_t sample, int64_t channel, int64_t at) const {
    const int64_t row = shape.groups == 1 ? sample : sample * shape.groups + channel / shape.channels;
    const C grad = convert<C>(g[at]);
    return {grad * (convert<C>(x[at]) - statistics.mean(row)) * statistics.rstds[row], grad};
  }
};
struct AffineGradients {
  Access weight;
  Access bias;  // null where there is none

  TT_DEVICE void operator()(int64_t c, const Sums& sums) const {
    weight.store(c, sums.first);
    if (bias.data) bias.store(c, sums.second);
  }
};

}  // namespace

void normalize_rows(const RowNorm& shape, const Tensor& input, const Tensor& weight, const Tensor& bias, double eps,
                    const Tensor& output, const Tensor& mean, const Tensor& rstd) {
  check_elements(weight, shape.all_channels(), "weight");
  check_elements(bias, shape.all_channels(), "bias");
  const Tensor x = contiguous(input), w = contiguous(weight), b = contiguous(bias);
  with_floating(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    forward(queue_of(output), shape, x.data_as<T>(), Weights(w), Weights(b), eps, output.data_as<T>(),
            Statistics<Wide<T>>(mean, rstd));
  });
}

void normalize_rows_backward(const RowNorm& shape, const Tensor& grad, const Tensor& input, const Tensor& weight,
                             const Tensor& mean, const Tensor& rstd, const Tensor& grad_input,
                             const Tensor& grad_weight, const Tensor& grad_bias) {
  check_elements(grad, shape.rows * shape.n(), "grad");
  check_elements(weight, shape.all_channels(), "weight");
  check_elements(mean, shape.rows, "mean");
  check_elements(rstd, shape.rows, "rstd");
  const DType wide = wide_type(input.dtype());
  const Tensor x = contiguous(input), g = contiguous_as(grad, input.dtype()), w = contiguous(weight);
  const Tensor means = contiguous_as(mean, wide), rstds = contiguous_as(rstd, wide);
  const Queue queue = queue_of(grad_input);
  const ChannelShape channels(shape.rows / shape.groups, shape.all_channels(), shape.space);
  const AffineGradients gradients{Access(grad_weight), Weights(grad_bias).access};
  with_floating(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    const Statistics<Wide<T>> statistics(means, rstds);
    const T *gs = g.data_as<T>(), *xs = x.data_as<T>();
    backward_input(queue, shape, gs, xs, Weights(w), statistics, grad_input.data_as<T>());
    sum_channels<Wide<T>>(queue, channels, AffineTerm<T>{shape, gs, xs, statistics}, gradients);
  });
}

}  // namespace tt::cuda
