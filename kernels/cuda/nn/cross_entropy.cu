// Cross entropy of logits with target classes, and its gradient, without storing log probabilities. The forward pass
// saves, per position, the largest logit and the logarithm of the sum of exp(logit - largest). Both passes read the
// logits once.
#include <string_view>

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch/channels.h"
#include "kernels/cuda/nn/softmax.h"
#include "kernels/cuda/nn/targets.h"

namespace tt::cuda {
namespace {

// Computes the loss of each position.
template <typename T>
struct Losses {
  SoftmaxRows split;
  Targets targets;
  Weights weight;
  LabelSmoothing smoothing;
  const T* logits;
  Access each;  // one loss per position
  AccumulateType<T>*largest, *log_sums;

  template <int kLanes, typename G>
  TT_DEVICE void process(G& group, int64_t i) const {
    using C = AccumulateType<T>;
    const T* x = logits + split.start(i);
    const Row<T, kLanes> row(group, split.n, x, split.inner);
    const Running<C> all = sum_exponentials<C>(group, row);
    const C log_sum = math::log(all.sum);
    double of_all = 0;  // the losses of all classes, times their factor
    if (smoothing.each != 0) {
      for_each_element(
          [&](int64_t at, C value) {
            of_all += smoothing.each * weight.at(at, 1.0) * static_cast<double>(log_sum - (value - all.most));
          },
          row);
      of_all = group.reduce(of_all, Add());
    }
    if (group.rank() != 0) return;
    largest[i] = all.most;
    log_sums[i] = log_sum;
    const int64_t t = targets.at(i);
    if (t < 0) return each.store(i, static_cast<C>(0 * smoothing.each));  // NaN if there are no classes
    const C loss = weight.at(t, C(1)) * (log_sum - (convert<C>(x[t * split.inner]) - all.most));
    each.store(i, smoothing.each != 0 ? static_cast<C>(static_cast<double>(loss) * smoothing.target + of_all) : loss);
  }
};

// Sums the losses and their weights in one group of threads, because inputs with enough targets for several groups are
// rare. The sum begins with `start`.
void sum_losses(const Queue& queue, Targets targets, Weights weight, Access each, bool with_loss, bool mean,
                double start, Access loss, Access total_weight) {
  const int64_t n = targets.shape.positions();
  for_each_group(queue, 1, n, [=] TT_DEVICE(Group & group) {
    Sums sums;
    for (int64_t i = group.rank(); i < n; i += group.size()) {
      const int64_t t = targets.at(i);
      if (t >= 0) sums += {with_loss ? each.load<double>(i) : 0, weight.at(t, 1.0)};
    }
    sums = group.reduce(sums, Add());
    if (group.rank() != 0) return;
    if (with_loss) loss.store(0, start + (mean ? sums.first / sums.second : sums.first));
    total_weight.store(0, sums.second);
  });
}

// Computes the gradient of the logits: softmax(logits), minus 1 at the target, times the gradient of the position's
// loss. Label smoothing subtracts a part of the 1 from each class.
template <typename T>
struct Gradients {
  SoftmaxRows split;
  Targets targets;
  Weights weight;
  LabelSmoothing smoothing;
  const T* logits;
  const AccumulateType<T>*largest, *log_sums;
  Access grad;
  bool each;  // whether `grad` has one element per position
  bool mean;
  Access total_weight;
  T* dx;

  template <int kLanes, typename G>
  TT_DEVICE void process(G& group, int64_t i) const {
    using C = AccumulateType<T>;
    const int64_t t = targets.at(i), start = split.start(i);
    const C share = mean ? 1 / total_weight.load<C>(0) : C(1);
    const C scale = t < 0 ? C(0) : grad.load<C>(each ? i : 0) * share * weight.at(t, C(1));
    const C most = largest[i], log_sum = log_sums[i];
    const Row<T, kLanes> row(group, split.n, logits + start, split.inner);
    if (smoothing.each != 0) {
      double all = 0;  // the sum of the weights of all classes
      for (int64_t c = group.rank(); c < split.n; c += group.size()) all += weight.at(c, 1.0);
      all = group.reduce(all, Add());
      const C rate = t < 0 ? C(0) : grad.load<C>(each ? i : 0) * share, of_each = rate * static_cast<C>(smoothing.each);
      const C of_target = t < 0 ? C(0) : rate * (static_cast<C>(smoothing.target) * weight.at(t, C(1)));
      const C sum = of_target + of_each * static_cast<C>(all);
      write(
          dx + start, split.inner,
          [&](int64_t at, C x) {
            const C spread = sum * math::exp(x - most - log_sum) - of_each * weight.at(at, C(1));
            return at == t ? spread - of_target : spread;
          },
          row);
      return;
    }
    write(
        dx + start, split.inner,
        [&](int64_t at, C x) { return scale * (math::exp(x - most - log_sum) - (at == t ? C(1) : C(0))); }, row);
  }
};

template <int kLanes, typename T, typename Pass>
void process_rows(const Queue& queue, const Pass& pass) {
  for_each_row<kMaxKeptOneRow<T, kLanes>>(queue, pass.split.rows(), pass.split.n, [=] TT_DEVICE(Group & group) {
    pass.template process<kLanes>(group, group.index());
  });
}
template <typename T, typename Pass>
void process_columns(const Queue& queue, const Pass& pass) {
  for_each(queue, pass.split.rows(), [=] TT_DEVICE(int64_t i) {
    SingleThreadGroup alone;
    pass.template process<1>(alone, i);
  });
}

template <typename T, typename Pass, typename... Pointers>
void process_positions(const Queue& queue, const Pass& pass, Pointers... starts) {
  if (pass.split.columns()) return process_columns<T>(queue, pass);
  const bool vectors = pass.split.inner == 1 && is_vectorizable(pass.split.n, sizeof(T), starts...);
  vectors ? process_rows<kVectorLanes<T>, T>(queue, pass) : process_rows<1, T>(queue, pass);
}

}  // namespace

void cross_entropy(const Tensor& input, const Tensor& target, const Tensor& weight, int64_t ignore_index,
                   std::string_view reduction, double label_smoothing, Tensor& output, Tensor& total_weight,
                   Tensor& largest, Tensor& log_sum) {
  const Queue queue = queue_of(output);
  const Tensor x = contiguous(input), w = contiguous(weight), classes = contiguous_as(target, DType::kInt64);
  const Targets targets = targets_of(queue, input.sizes(), classes, weight, ignore_index);
  const LabelSmoothing smoothing(label_smoothing, targets.shape);
  const bool none = reduction == "none";
  const Tensor each = none ? output : empty(target.sizes(), log_sum.dtype(), output.device());
  with_floating(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    const T* logits = x.data_as<T>();
    process_positions<T>(
        queue,
        Losses<T>{SoftmaxRows(x.sizes(), class_dim(x)), targets, Weights(w), smoothing, logits, Access(each),
                  largest.data_as<AccumulateType<T>>(), log_sum.data_as<AccumulateType<T>>()},
        logits);
  });
  sum_losses(queue, targets, Weights(w), Access(each), !none, reduction == "mean", 0 * smoothing.each, Access(output),
             Access(total_weight));
}

void cross_entropy_backward(const Tensor& grad, const Tensor& input, const Tensor& target, const Tensor& weight,
                            const Tensor& total_weight, const Tensor& largest, const Tensor& log_sum,
                            int64_t ignore_index, std::string_view reduction, double label_smoothing, Tensor& out) {
  const Queue queue = queue_of(out);
  const Tensor x = contiguous(input), g = contiguous(grad), w = contiguous(weight);
  const Tensor classes = contiguous_as(target, DType::kInt64);
  const Targets targets = targets_of(queue, input.sizes(), classes, weight, ignore_index);
  const bool none = reduction == "none";
  check_loss_gradient(grad, none ? targets.shape.positions() : 1, total_weight);
  check_sums(largest, log_sum, targets.shape);
  const DType wide = accumulate_type(x.dtype());
  const Tensor most = contiguous_as(largest, wide), sums = contiguous_as(log_sum, wide);
  with_floating(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    const T* logits = x.data_as<T>();
    T* dx = out.data_as<T>();
    process_positions<T>(
        queue,
        Gradients<T>{SoftmaxRows(x.sizes(), class_dim(x)), targets, Weights(w),
                     LabelSmoothing(label_smoothing, targets.shape), logits, most.data_as<AccumulateType<T>>(),
                     sums.data_as<AccumulateType<T>>(), Access(g), none, reduction == "mean", Access(total_weight), dx},
        logits, dx);
  });
}

}  // namespace tt::cuda
