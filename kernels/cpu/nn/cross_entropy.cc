// Cross entropy of logits with target classes, and its gradient, without storing log probabilities. Stores, for each
// position, the largest logit and the logarithm of the sum of exp(logit - largest).
#include <algorithm>
#include <limits>
#include <numeric>
#include <string_view>

#include "kernels/cpu/iteration/accumulate_type.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/nn/softmax.h"
#include "kernels/cpu/nn/targets.h"

namespace tt::cpu {

void cross_entropy(const Tensor& input, const Tensor& target, const Tensor& weight, int64_t ignore_index,
                   std::string_view reduction, double label_smoothing, Tensor& output, Tensor& total_weight,
                   Tensor& largest, Tensor& log_sum) {
  const Targets targets(input.sizes(), target, ignore_index, weight);
  const LabelSmoothing smoothing(label_smoothing, targets.shape);
  const Tensor x = as_accumulate_type(input), w = contiguous_as(weight, x.dtype());
  const Tensor all_classes =
      smoothing.applies() ? empty({targets.shape.positions()}, DType::kFloat64, x.device()) : Tensor();
  const bool none = reduction == "none";
  AccumulateBuffer result(output);
  with_real(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    const T *logits = x.data_as<T>(), *weights = data_or_null<T>(w);
    T *y = result.tensor().data_as<T>(), *most = largest.data_as<T>(), *sums = log_sum.data_as<T>();
    double* const uniform = all_classes ? all_classes.data_as<double>() : nullptr;
    const SoftmaxVectors split(x.sizes(), class_dim(x));
    if (split.n == 0) {
      std::fill_n(most, split.vectors(), -std::numeric_limits<T>::infinity());
      std::fill_n(sums, split.vectors(), -std::numeric_limits<T>::infinity());
    }
    split.for_each_group([&](const Vectors& v, int64_t at) {
      const int64_t i = split.index_of(at);
      log_sums(v, logits + at, most + i, sums + i);
      if (uniform) uniform_losses(v, logits + at, most + i, sums + i, weights, smoothing.each, uniform + i);
    });
    double sum = 0 * smoothing.each, total = 0;  // NaN if there are no classes
    if (none) std::fill_n(y, split.vectors(), static_cast<T>(sum));
    targets.for_each([&](int64_t i, int64_t at, int64_t c) {
      const double scale = weights ? static_cast<double>(weights[c]) : 1.0;
      double loss = scale * static_cast<double>(sums[i] - (logits[at] - most[i]));
      if (uniform) loss = loss * smoothing.target + uniform[i];
      if (none) y[i] = static_cast<T>(loss);
      sum += loss;
      total += scale;
    });
    if (!none) *y = static_cast<T>(reduction == "mean" ? sum / total : sum);
    *total_weight.data_as<T>() = static_cast<T>(total);
  });
  result.copy_to_output();
}

void cross_entropy_backward(const Tensor& grad, const Tensor& input, const Tensor& target, const Tensor& weight,
                            const Tensor& total_weight, const Tensor& largest, const Tensor& log_sum,
                            int64_t ignore_index, std::string_view reduction, double label_smoothing, Tensor& out) {
  const Targets targets(input.sizes(), target, ignore_index, weight);
  const LabelSmoothing smoothing(label_smoothing, targets.shape);
  const bool none = reduction == "none";
  check_loss_gradient(grad, none ? targets.target.numel() : 1, total_weight);
  check_sums(largest, log_sum, targets.shape);
  const Tensor x = as_accumulate_type(input);
  const DType dtype = x.dtype();
  const Tensor g = contiguous_as(grad, dtype), w = contiguous_as(weight, dtype);
  const Tensor total = contiguous_as(total_weight, dtype);
  const Tensor most = contiguous_as(largest, dtype), sums = contiguous_as(log_sum, dtype);
  const Tensor scales = empty({targets.shape.positions()}, dtype, x.device());
  const Tensor rates = smoothing.applies() ? empty(scales.sizes(), dtype, x.device()) : Tensor();
  AccumulateBuffer result(out);
  with_real(dtype, [&]<typename T>(std::type_identity<T>) {
    const T *logits = x.data_as<T>(), *gs = g.data_as<T>(), *weights = data_or_null<T>(w);
    T *scale = scales.data_as<T>(), *rate = rates ? rates.data_as<T>() : nullptr, *dx = result.tensor().data_as<T>();
    const T share = reduction == "mean" ? 1 / *total.data_as<T>() : T(1);
    const SoftmaxVectors split(x.sizes(), class_dim(x));
    std::fill_n(scale, split.vectors(), T(0));
    if (!rate) {
      targets.for_each(
          [&](int64_t i, int64_t, int64_t c) { scale[i] = gs[none ? i : 0] * share * (weights ? weights[c] : T(1)); });
      split.for_each_group([&](const Vectors& v, int64_t at) {
        const int64_t i = split.index_of(at);
        scaled_softmax(v, logits + at, most.data_as<T>() + i, sums.data_as<T>() + i, scale + i, dx + at);
      });
      targets.for_each([&](int64_t i, int64_t at, int64_t) { dx[at] -= scale[i]; });
      return;
    }
    const T of_target = static_cast<T>(smoothing.target), of_each = static_cast<T>(smoothing.each);
    const T all =
        static_cast<T>(weights ? std::accumulate(weights, weights + split.n, 0.0) : static_cast<double>(split.n));
    std::fill_n(rate, split.vectors(), T(0));
    targets.for_each([&](int64_t i, int64_t, int64_t c) {
      const T by = gs[none ? i : 0] * share;
      scale[i] = by * (of_target * (weights ? weights[c] : T(1)) + of_each * all);
      rate[i] = by * of_each;
    });
    split.for_each_group([&](const Vectors& v, int64_t at) {
      const int64_t i = split.index_of(at);
      smoothed_softmax(v, logits + at, most.data_as<T>() + i, sums.data_as<T>() + i, scale + i, rate + i, weights,
                       dx + at);
    });
    targets.for_each([&](int64_t i, int64_t at, int64_t c) {
      dx[at] -= gs[none ? i : 0] * share * (of_target * (weights ? weights[c] : T(1)));
    });
  });
  result.copy_to_output();
}

}  // namespace tt::cpu
