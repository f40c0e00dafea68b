// nll_loss: the negative log likelihood of target classes, and its gradient.
#include <algorithm>
#include <string_view>

#include "kernels/cpu/iteration/accumulate_type.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/nn/targets.h"

namespace tt::cpu {

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
