// ctc_loss: connectionist temporal classification (Graves et al., ICML 2006), forward and backward passes over
// alignments.
#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/device/parallel.h"
#include "kernels/common/nn/ctc_alignments.h"
#include "kernels/cpu/iteration/accumulate_type.h"
#include "kernels/cpu/kernels.h"

namespace tt::cpu {
namespace {

// The sequences of one call. The constructor checks the targets and stores the label of each state.
struct Sequences {
  absl::Span<const int64_t> input_lengths, target_lengths;
  int64_t width, blank;
  std::vector<int64_t> labels;  // `width` labels per sequence

  Sequences(const Tensor& log_probs, const Tensor& target, absl::Span<const int64_t> inputs,
            absl::Span<const int64_t> lengths, int64_t width, int64_t blank)
      : input_lengths(inputs),
        target_lengths(lengths),
        width(width),
        blank(blank),
        labels(lengths.size() * width, blank) {
    const Tensor targets = contiguous_as(target, DType::kInt64);
    const std::vector<int64_t> starts = label_starts(target, lengths);
    const int64_t classes = log_probs.size(2);
    for (size_t i = 0; i < lengths.size(); ++i) {
      for (int64_t s = 0; s < lengths[i]; ++s) {
        const int64_t label = targets.data_as<int64_t>()[starts[i] + s];
        check(label >= 0 && label < classes, label_error(label, classes));
        labels[i * width + 2 * s + 1] = label;
      }
    }
  }
  int64_t steps(int64_t i) const { return input_lengths[static_cast<size_t>(i)]; }
  Alignments alignments(int64_t i) const {
    return {labels.data() + i * width, 2 * target_lengths[static_cast<size_t>(i)] + 1, blank};
  }
};

// The log_probs of one sequence.
template <typename T>
struct Emissions {
  const T* data;
  int64_t batch, classes, sequence;
  const T* at(int64_t t) const { return data + (t * batch + sequence) * classes; }
};

// Sets alpha[t][s] to the log of the total probability of all paths that are in state s at time t. Returns the loss.
template <typename T>
T forward_paths(const Sequences& q, int64_t i, const Emissions<T>& p, T* alpha) {
  const Alignments paths = q.alignments(i);
  const int64_t steps = q.steps(i);
  if (steps == 0) return paths.loss_without_steps<T>();
  for (int64_t s = 0; s < std::min<int64_t>(2, paths.states); ++s) alpha[s] = p.at(0)[paths.labels[s]];
  for (int64_t t = 1; t < steps; ++t) {
    const T* before = alpha + (t - 1) * q.width;
    for (int64_t s = 0; s < paths.states; ++s) {
      alpha[t * q.width + s] = paths.forward_sum(before, s) + p.at(t)[paths.labels[s]];
    }
  }
  return paths.loss(alpha + (steps - 1) * q.width);
}

// Adds the gradient of sequence i's log_probs: -g times the probability that a path emits each class at each time.
template <typename T>
void backward_paths(const Sequences& q, int64_t i, const Emissions<T>& p, const T* alpha, T loss, T g, T* grad) {
  const Alignments paths = q.alignments(i);
  const int64_t steps = q.steps(i), states = paths.states;
  if (steps == 0 || loss == math::kInf<T>) return;
  std::vector<T> beta(static_cast<size_t>(states), -math::kInf<T>), next(beta);
  for (int64_t s = std::max<int64_t>(0, states - 2); s < states; ++s) beta[static_cast<size_t>(s)] = 0;
  for (int64_t t = steps - 1; t >= 0; --t) {
    for (int64_t s = 0; s < states; ++s) {
      const T share = alpha[t * q.width + s] + beta[static_cast<size_t>(s)] + loss;
      grad[(t * p.batch + i) * p.classes + paths.labels[s]] -= g * std::exp(share);
    }
    // beta for time t - 1 includes the emission at t.
    std::swap(beta, next);
    for (int64_t s = 0; s < states; ++s) beta[static_cast<size_t>(s)] = paths.backward_sum(next.data(), p.at(t), s);
  }
}

}  // namespace

void ctc_loss_forward(const Tensor& log_probs, const Tensor& targets, absl::Span<const int64_t> input_lengths,
                      absl::Span<const int64_t> target_lengths, int64_t blank, Tensor& loss, Tensor& log_alpha) {
  const int64_t width = log_alpha.size(2), block = log_alpha.size(1) * width;
  const Sequences q(log_probs, targets, input_lengths, target_lengths, width, blank);
  const Tensor x = as_accumulate_type(log_probs);
  AccumulateBuffer losses(loss), alphas(log_alpha);
  with_real(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    T* alpha = alphas.tensor().data_as<T>();
    std::fill_n(alpha, log_alpha.numel(), -math::kInf<T>);
    parallel_for(loss.numel(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const Emissions<T> p{x.data_as<T>(), loss.numel(), x.size(2), i};
        losses.tensor().data_as<T>()[i] = forward_paths(q, i, p, alpha + i * block);
      }
    });
  });
  losses.copy_to_output();
  alphas.copy_to_output();
}

void ctc_loss_backward(const Tensor& grad, const Tensor& log_probs, const Tensor& targets,
                       absl::Span<const int64_t> input_lengths, absl::Span<const int64_t> target_lengths,
                       const Tensor& loss, const Tensor& log_alpha, int64_t blank, Tensor& out) {
  const int64_t width = log_alpha.size(2), block = log_alpha.size(1) * width;
  const Sequences q(log_probs, targets, input_lengths, target_lengths, width, blank);
  const Tensor x = as_accumulate_type(log_probs);
  const Tensor g = contiguous_as(grad, x.dtype()), nll = contiguous_as(loss, x.dtype()),
               alphas = contiguous_as(log_alpha, x.dtype());
  AccumulateBuffer result(out);
  with_real(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    T* dx = result.tensor().data_as<T>();
    std::fill_n(dx, out.numel(), T(0));
    parallel_for(nll.numel(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const Emissions<T> p{x.data_as<T>(), nll.numel(), x.size(2), i};
        backward_paths(q, i, p, alphas.data_as<T>() + i * block, nll.data_as<T>()[i], g.data_as<T>()[i], dx);
      }
    });
  });
  result.copy_to_output();
}

}  // namespace tt::cpu
