#include "kernels/cuda/norm/row_norm.h"

#include <limits>

#include "kernels/common/iteration/operands.h"
#include "kernels/common/math/scalar_math.h"
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/launch/channels.h"
#include "kernels/cuda/launch/row.h"

namespace tt::cuda {
namespace {

// Statistics of each row. `means` is null if rows are not centred.
template <typename C>
struct Statistics {
  C* means;
  C* rstds;

  Statistics(const Tensor& mean, const Tensor& rstd)
      : means(mean ? mean.data_as<C>() : nullptr), rstds(rstd.data_as<C>()) {}
  TT_FUNCTION C mean(int64_t row) const { return means ? means[row] : C(0); }
};

// A weight or bias: one number per channel, or null. W is the input's element type, or float if the input is 16-bit.
template <typename W>
struct Affine {
  const W* numbers;

  explicit Affine(const Tensor& t) : numbers(t ? t.data_as<W>() : nullptr) {}
  // Returns the numbers of kLanes adjacent elements of a row, from element i on.
  template <int kLanes, typename C>
  TT_DEVICE Lanes<C, kLanes> lanes(const RowNorm& shape, int64_t first, int64_t i, C otherwise) const {
    Lanes<C, kLanes> all;
    constexpr int kTogether = 16 / sizeof(W) < kLanes ? 16 / sizeof(W) : kLanes;
    if (!numbers) {
      TT_UNROLL for (int l = 0; l < kLanes; ++l) all.at[l] = otherwise;
    } else if (kLanes > 1 && shape.space == 1 && reinterpret_cast<uintptr_t>(numbers + first) % 16 == 0) {
      TT_UNROLL for (int l = 0; l < kLanes; l += kTogether) {
        const Lanes<C, kTogether> some = load_lanes<W, kTogether>(numbers + first, 1, i + l);
        TT_UNROLL for (int j = 0; j < kTogether; ++j) all.at[l + j] = some.at[j];
      }
    } else {
      TT_UNROLL for (int l = 0; l < kLanes; ++l) all.at[l] = convert<C>(numbers[shape.channel(first, i + l)]);
    }
    return all;
  }
};

template <typename T, int kLanes, typename W>
void forward(const Queue& queue, RowNorm shape, const T* x, Affine<W> weight, Affine<W> bias, double eps, T* y,
             Statistics<AccumulateType<T>> statistics) {
  using C = AccumulateType<T>;
  for_each_row<kMaxKeptOneRow<T, kLanes>>(queue, shape.rows, shape.n(), [=] TT_DEVICE(Group & group) {
    const int64_t r = group.index(), at = r * shape.n(), first = shape.first_channel(r);
    const C n = static_cast<C>(shape.n());
    const Row<T, kLanes> row(group, shape.n(), x + at, 1);
    C mean = 0, squares = 0;
    if (statistics.means) {
      for_each_element([&](int64_t, C value) { mean += value; }, row);
      mean = group.reduce(mean, Add()) / n;
    }
    for_each_element([&](int64_t, C value) { squares += (value - mean) * (value - mean); }, row);
    const C rstd = math::rsqrt(group.reduce(squares, Add()) / n + static_cast<C>(eps));
    const auto normalize = [&](int64_t i, const Lanes<C, kLanes>& x) {
      const auto w = weight.template lanes<kLanes>(shape, first, i, C(1));
      const auto b = bias.template lanes<kLanes>(shape, first, i, C(0));
      Lanes<C, kLanes> results;
      TT_UNROLL for (int l = 0; l < kLanes; ++l) results.at[l] = (x.at[l] - mean) * rstd * w.at[l] + b.at[l];
      store_lanes<T, kLanes>(y + at, 1, i, results);
    };
    for_each_vector(normalize, row);
    if (group.rank() == 0) {
      if (statistics.means) statistics.means[r] = mean;
      statistics.rstds[r] = rstd;
    }
  });
}

template <typename T, int kLanes, typename W>
void backward_input(const Queue& queue, RowNorm shape, const T* g, const T* x, Affine<W> weight,
                    Statistics<AccumulateType<T>> statistics, T* dx) {
  using C = AccumulateType<T>;
  for_each_row<kMaxKeptTwoRows<T>>(queue, shape.rows, shape.n(), [=] TT_DEVICE(Group & group) {
    const int64_t r = group.index(), at = r * shape.n(), first = shape.first_channel(r);
    const C mean = statistics.mean(r), rstd = statistics.rstds[r], n = static_cast<C>(shape.n());
    const Row<T, kLanes, kMaxKeptTwoRows<T>> grads(group, shape.n(), g + at, 1), row(group, shape.n(), x + at, 1);
    using Taken = Lanes<C, kLanes>;
    TwoSums<C> sums;
    const auto add = [&](int64_t i, const Taken& grad, const Taken& x) {
      const Taken w = weight.template lanes<kLanes>(shape, first, i, C(1));
      TT_UNROLL for (int l = 0; l < kLanes; ++l) {
        sums += {grad.at[l] * w.at[l], grad.at[l] * w.at[l] * (x.at[l] - mean)};
      }
    };
    for_each_vector(add, grads, row);
    sums = group.reduce(sums, Add());
    const C slope = -rstd * rstd * rstd * sums.second / n;
    const C constant = statistics.means ? -rstd * sums.first / n : C(0);
    const auto differentiate = [&](int64_t i, const Taken& grad, const Taken& x) {
      const Taken w = weight.template lanes<kLanes>(shape, first, i, C(1));
      Taken results;
      TT_UNROLL for (int l = 0; l < kLanes; ++l) {
        results.at[l] = rstd * grad.at[l] * w.at[l] + slope * (x.at[l] - mean) + constant;
      }
      store_lanes<T, kLanes>(dx + at, 1, i, results);
    };
    for_each_vector(differentiate, grads, row);
  });
}

// An element's summands in its channel's gradients: `first` of the weight, `second` of the bias.
template <typename T>
struct AffineTerm {
  using C = AccumulateType<T>;
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
  Access bias;  // null if there is none

  TT_DEVICE void operator()(int64_t c, const Sums& sums) const {
    weight.store(c, sums.first);
    if (bias.data) bias.store(c, sums.second);
  }
};

// Returns the dtype to convert weight and bias to: the input's dtype if both have it, else its accumulate type.
DType affine_type(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  const bool wide = (weight && weight.dtype() != input.dtype()) || (bias && bias.dtype() != input.dtype());
  return wide ? accumulate_type(input.dtype()) : input.dtype();
}

// Calls f with the element types of the input and of the weights.
template <typename F>
void with_types(DType input, DType affine, F&& f) {
  with_floating(input, [&]<typename T>(std::type_identity<T> type) {
    affine == input ? f(type, type) : f(type, std::type_identity<AccumulateType<T>>());
  });
}

void check_row(const RowNorm& shape) {
  check(ErrorKind::kNotImplemented, shape.n() <= std::numeric_limits<uint32_t>::max(), "rows of ", shape.n(),
        " elements are not implemented on CUDA");
}

}  // namespace

void normalize_rows(const RowNorm& shape, const Tensor& input, const Tensor& weight, const Tensor& bias, double eps,
                    const Tensor& output, const Tensor& mean, const Tensor& rstd) {
  check_row(shape);
  check_elements(weight, shape.all_channels(), "weight");
  check_elements(bias, shape.all_channels(), "bias");
  const DType affine = affine_type(input, weight, bias);
  const Tensor x = contiguous(input), w = contiguous_as(weight, affine), b = contiguous_as(bias, affine);
  const Queue queue = queue_of(output);
  with_types(x.dtype(), affine, [&]<typename T, typename W>(std::type_identity<T>, std::type_identity<W>) {
    const Statistics<AccumulateType<T>> statistics(mean, rstd);
    const T* from = x.data_as<T>();
    T* to = output.data_as<T>();
    is_vectorizable(shape.n(), sizeof(T), from, to)
        ? forward<T, kVectorLanes<T>>(queue, shape, from, Affine<W>(w), Affine<W>(b), eps, to, statistics)
        : forward<T, 1>(queue, shape, from, Affine<W>(w), Affine<W>(b), eps, to, statistics);
  });
}

void normalize_rows_backward(const RowNorm& shape, const Tensor& grad, const Tensor& input, const Tensor& weight,
                             const Tensor& mean, const Tensor& rstd, const Tensor& grad_input,
                             const Tensor& grad_weight, const Tensor& grad_bias) {
  check_row(shape);
  check_elements(grad, shape.rows * shape.n(), "grad");
  check_elements(weight, shape.all_channels(), "weight");
  check_elements(mean, shape.rows, "mean");
  check_elements(rstd, shape.rows, "rstd");
  const DType wide = accumulate_type(input.dtype()), affine = affine_type(input, weight, Tensor());
  const Tensor x = contiguous(input), g = contiguous_as(grad, input.dtype()), w = contiguous_as(weight, affine);
  const Tensor means = contiguous_as(mean, wide), rstds = contiguous_as(rstd, wide);
  const Queue queue = queue_of(grad_input);
  const ChannelShape channels(shape.rows / shape.groups, shape.all_channels(), shape.space);
  const AffineGradients gradients{Access(grad_weight), Weights(grad_bias).access};
  with_types(x.dtype(), affine, [&]<typename T, typename W>(std::type_identity<T>, std::type_identity<W>) {
    const Statistics<AccumulateType<T>> statistics(means, rstds);
    const T *gs = g.data_as<T>(), *xs = x.data_as<T>();
    T* to = grad_input.data_as<T>();
    is_vectorizable(shape.n(), sizeof(T), gs, xs, to)
        ? backward_input<T, kVectorLanes<T>>(queue, shape, gs, xs, Affine<W>(w), statistics, to)
        : backward_input<T, 1>(queue, shape, gs, xs, Affine<W>(w), statistics, to);
  });
  with_floating(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    const Statistics<AccumulateType<T>> statistics(means, rstds);
    sum_channels<AccumulateType<T>>(queue, channels, AffineTerm<T>{shape, g.data_as<T>(), x.data_as<T>(), statistics},
                                    gradients);
  });
}

}  // namespace tt::cuda
