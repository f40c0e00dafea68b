// nll_loss: the negative log likelihood of target classes, and its gradient.
#include <string_view>

#include "kernels/cuda/iteration/atomic_accumulate.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch/channels.h"
#include "kernels/cuda/nn/targets.h"

namespace tt::cuda {
namespace {

void losses(const Queue& queue, Targets targets, Access x, Weights weight, Access y) {
  for_each(queue, targets.shape.positions(), [=] TT_DEVICE(int64_t i) {
    const int64_t t = targets.at(i);
    y.store(i, t < 0 ? 0 : -weight.at(t, 1.0) * x.load<double>(targets.shape.offset(i, t)));
  });
}

// Sums the losses and their weights in one group of threads, because inputs with enough targets for several groups are
// rare.
void total_loss(const Queue& queue, Targets targets, Access x, Weights weight, bool with_loss, bool mean, Access y,
                Access total) {
  const int64_t n = targets.shape.positions();
  for_each_group(queue, 1, n, [=] TT_DEVICE(Group & group) {
    Sums sums;
    for (int64_t i = group.rank(); i < n; i += group.size()) {
      const int64_t t = targets.at(i);
      if (t < 0) continue;
      const double scale = weight.at(t, 1.0);
      sums += {-scale * x.load<double>(targets.shape.offset(i, t)), scale};
    }
    sums = group.reduce(sums, Add());
    if (group.rank() != 0) return;
    if (with_loss) y.store(0, mean ? sums.first / sums.second : sums.first);
    total.store(0, sums.second);
  });
}

void gradients(const Queue& queue, Targets targets, Access g, bool each, Weights weight, const Access total, bool mean,
               Access dx) {
  for_each(queue, targets.shape.positions(), [=] TT_DEVICE(int64_t i) {
    const int64_t t = targets.at(i);
    if (t < 0) return;
    const double share = mean ? 1 / total.load<double>(0) : 1.0;
    dx.store(targets.shape.offset(i, t), -g.load<double>(each ? i : 0) * share * weight.at(t, 1.0));
  });
}

}  // namespace

void nll_loss(const Tensor& input, const Tensor& target, const Tensor& weight, int64_t ignore_index,
              std::string_view reduction, Tensor& output, Tensor& total_weight) {
  const Queue queue = queue_of(output);
  const Tensor x = contiguous(input), w = contiguous(weight), classes = contiguous_as(target, DType::kInt64);
  const Targets targets = targets_of(queue, input.sizes(), classes, weight, ignore_index);
  const bool none = reduction == "none";
  if (none) losses(queue, targets, Access(x), Weights(w), Access(output));
  total_loss(queue, targets, Access(x), Weights(w), !none, reduction == "mean", Access(output), Access(total_weight));
}

void nll_loss_backward(const Tensor& grad, const Tensor& target, const Tensor& weight, const Tensor& total_weight,
                       absl::Span<const int64_t> size, int64_t ignore_index, std::string_view reduction, Tensor& out) {
  const Queue queue = queue_of(out);
  const Tensor g = contiguous(grad), w = contiguous(weight), classes = contiguous_as(target, DType::kInt64);
  const Targets targets = targets_of(queue, size, classes, weight, ignore_index);
  const bool none = reduction == "none";
  check_loss_gradient(grad, none ? targets.shape.positions() : 1, total_weight);
  fill_zeros(queue, out);
  gradients(queue, targets, Access(g), none, Weights(w), Access(total_weight), reduction == "mean", Access(out));
}

}  // namespace tt::cuda
