// nll_loss: the negative log likelihood of target classes, and its gradient.
#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

#include "kernels/cpu/iteration/accumulate_type.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/nn/targets.h"

namespace tt::cpu {
namespace {

// The sum of the targets' likelihoods without weights, and the number of targets that are not ignored. Four sums, so
// that additions do not wait for each other.
template <typename T>
std::pair<double, double> sum_likelihoods(const Targets& targets, const T* likelihoods) {
  constexpr int64_t kSums = 4;
  double sums[kSums] = {};
  int64_t counted = 0;
  const int64_t* const classes = targets.target.data_as<int64_t>();
  const auto add = [&](int64_t i, int64_t lane) {
    const bool counts = classes[i] != targets.ignore;
    const T value = likelihoods[i * targets.shape.classes + (counts ? classes[i] : 0)];
    sums[lane] += static_cast<double>(counts ? value : T(0));
    counted += counts;
  };
  int64_t i = 0;
  for (; i + kSums <= targets.shape.samples; i += kSums) {
    for (int64_t lane = 0; lane < kSums; ++lane) add(i + lane, lane);
  }
  for (; i < targets.shape.samples; ++i) add(i, 0);
  return {(sums[0] + sums[1]) + (sums[2] + sums[3]), static_cast<double>(counted)};
}

}  // namespace

void nll_loss(const Tensor& input, const Tensor& target, const Tensor& weight, int64_t ignore_index,
              std::string_view reduction, Tensor& output, Tensor& total_weight) {
  const Targets targets(input.sizes(), target, ignore_index, weight);
  const Tensor x = as_accumulate_type(input), w = contiguous_as(weight, x.dtype());
  AccumulateBuffer result(output), total_result(total_weight);
  with_real(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    T* y = result.tensor().data_as<T>();
    const T* weights = data_or_null<T>(w);
    const T* const likelihoods = x.data_as<T>();
    const bool none = reduction == "none";
    double sum = 0, total = 0;
    if (!none && !weights && targets.shape.space == 1 && targets.shape.classes > 0) {
      std::tie(sum, total) = sum_likelihoods(targets, likelihoods);
      *y = static_cast<T>(reduction == "mean" ? (0.0 - sum) / total : 0.0 - sum);
      *total_result.tensor().template data_as<T>() = static_cast<T>(total);
      return;
    }
    if (none) std::fill(y, y + output.numel(), T(0));
    targets.for_each([&](int64_t i, int64_t at, int64_t c) {
      const double scale = weights ? static_cast<double>(weights[c]) : 1.0;
      const double loss = -scale * static_cast<double>(likelihoods[at]);
      if (none) y[i] = static_cast<T>(loss);
      sum += loss;
      total += scale;
    });
    if (!none) *y = static_cast<T>(reduction == "mean" ? sum / total : sum);
    *total_result.tensor().template data_as<T>() = static_cast<T>(total);
  });
  result.copy_to_output();
  total_result.copy_to_output();
}

void nll_loss_backward(const Tensor& grad, const Tensor& target, const Tensor& weight, const Tensor& total_weight,
                       absl::Span<const int64_t> size, int64_t ignore_index, std::string_view reduction, Tensor& out) {
  const Targets targets(size, target, ignore_index, weight);
  const bool none = reduction == "none";
  const Tensor g = as_accumulate_type(grad), w = contiguous_as(weight, g.dtype()),
               total = contiguous_as(total_weight, g.dtype());
  check_loss_gradient(grad, none ? targets.target.numel() : 1, total_weight);
  AccumulateBuffer result(out);
  with_real(g.dtype(), [&]<typename T>(std::type_identity<T>) {
    T* dx = result.tensor().data_as<T>();
    const T *gs = g.data_as<T>(), *weights = data_or_null<T>(w);
    std::fill(dx, dx + out.numel(), T(0));
    const T share = reduction == "mean" ? 1 / *total.data_as<T>() : T(1);
    targets.for_each(
        [&](int64_t i, int64_t at, int64_t c) { dx[at] = -gs[none ? i : 0] * share * (weights ? weights[c] : T(1)); });
  });
  result.copy_to_output();
}

}  // namespace tt::cpu
