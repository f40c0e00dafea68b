// ctc_loss: connectionist temporal classification (Graves et al., ICML 2006), forward and backward over alignments.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "engine/parallel.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/wide.h"

namespace tt::cpu {
namespace {

template <typename T>
constexpr T kNever = -std::numeric_limits<T>::infinity();

template <typename T>
T log_add(T a, T b) {
  if (a < b) std::swap(a, b);
  return b == kNever<T> ? a : a + std::log1p(std::exp(b - a));
}

// One call's sequences: targets checked, and the labels of a path with blanks between them.
struct Sequences {
  Tensor targets;
  absl::Span<const int64_t> input_lengths, target_lengths;
  int64_t classes, blank;
  std::vector<int64_t> starts;

  Sequences(const Tensor& log_probs, const Tensor& target, absl::Span<const int64_t> inputs,
            absl::Span<const int64_t> lengths, int64_t blank_label)
      : targets(contiguous_as(target, DType::kInt64)), input_lengths(inputs), target_lengths(lengths),
        classes(log_probs.size(2)), blank(blank_label) {
    int64_t at = 0;
    for (size_t i = 0; i < lengths.size(); ++i) {
      starts.push_back(target.dim() == 2 ? static_cast<int64_t>(i) * target.size(1) : at);
      at += lengths[i];
      for (int64_t s = 0; s < lengths[i]; ++s) {
        const int64_t label = targets.data_as<int64_t>()[starts[i] + s];
        check(label >= 0 && label < classes, "targets must be in [0, ", classes, "), got ", label);
      }
    }
  }
  int64_t states(int64_t i) const { return 2 * target_lengths[static_cast<size_t>(i)] + 1; }
  int64_t label(int64_t i, int64_t state) const {
    return state % 2 == 0 ? blank : targets.data_as<int64_t>()[starts[static_cast<size_t>(i)] + state / 2];
  }
  // Whether a path may come from two states before: from another label, over the blank between.
  bool skips(int64_t i, int64_t state) const {
    return state >= 2 && label(i, state) != blank && label(i, state) != label(i, state - 2);
  }
};

// log_probs of sequence i: of class c at time t.
template <typename T>
struct Emissions {
  const T* data;
  int64_t batch, classes, sequence;
  T at(int64_t t, int64_t c) const { return data[(t * batch + sequence) * classes + c]; }
};

// alpha[t][s]: of all paths that are in state s at time t. Returns the loss.
template <typename T>
T forward_paths(const Sequences& q, int64_t i, const Emissions<T>& p, int64_t width, T* alpha) {
  const int64_t steps = q.input_lengths[static_cast<size_t>(i)], states = q.states(i);
  if (steps == 0) return states == 1 ? T(0) : -kNever<T>;
  for (int64_t s = 0; s < std::min<int64_t>(2, states); ++s) alpha[s] = p.at(0, q.label(i, s));
  for (int64_t t = 1; t < steps; ++t) {
    const T* before = alpha + (t - 1) * width;
    for (int64_t s = 0; s < states; ++s) {
      T sum = before[s];
      if (s >= 1) sum = log_add(sum, before[s - 1]);
      if (q.skips(i, s)) sum = log_add(sum, before[s - 2]);
      alpha[t * width + s] = sum + p.at(t, q.label(i, s));
    }
  }
  const T* last = alpha + (steps - 1) * width;
  return -(states > 1 ? log_add(last[states - 1], last[states - 2]) : last[0]);
}

// Adds the gradient of log_probs for sequence i: minus the share of paths that emit each class at each time.
template <typename T>
void backward_paths(const Sequences& q, int64_t i, const Emissions<T>& p, int64_t width, const T* alpha, T loss, T g,
                    T* grad) {
  const int64_t steps = q.input_lengths[static_cast<size_t>(i)], states = q.states(i);
  if (steps == 0 || loss == -kNever<T>) return;
  std::vector<T> beta(static_cast<size_t>(states), kNever<T>), next(beta);
  for (int64_t s = std::max<int64_t>(0, states - 2); s < states; ++s) beta[static_cast<size_t>(s)] = 0;
  for (int64_t t = steps - 1; t >= 0; --t) {
    for (int64_t s = 0; s < states; ++s) {
      const T share = alpha[t * width + s] + beta[static_cast<size_t>(s)] + loss;
      grad[(t * p.batch + i) * p.classes + q.label(i, s)] -= g * std::exp(share);
    }
    // beta before time t: what is emitted at t counts.
    std::swap(beta, next);
    for (int64_t s = 0; s < states; ++s) {
      const auto through = [&](int64_t to) { return next[static_cast<size_t>(to)] + p.at(t, q.label(i, to)); };
      T sum = through(s);
      if (s + 1 < states) sum = log_add(sum, through(s + 1));
      if (s + 2 < states && q.skips(i, s + 2)) sum = log_add(sum, through(s + 2));
      beta[static_cast<size_t>(s)] = sum;
    }
  }
}

}  // namespace

void ctc_loss_forward(const Tensor& log_probs, const Tensor& targets, absl::Span<const int64_t> input_lengths,
                      absl::Span<const int64_t> target_lengths, int64_t blank, Tensor& loss, Tensor& log_alpha) {
  const Sequences q(log_probs, targets, input_lengths, target_lengths, blank);
  const Tensor x = wide(log_probs);
  WideResult losses(loss), alphas(log_alpha);
  const int64_t width = log_alpha.size(2), block = log_alpha.size(1) * width;
  with_real(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    T* alpha = alphas.tensor().data_as<T>();
    std::fill_n(alpha, log_alpha.numel(), kNever<T>);
    parallel_for(loss.numel(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const Emissions<T> p{x.data_as<T>(), loss.numel(), q.classes, i};
        losses.tensor().data_as<T>()[i] = forward_paths(q, i, p, width, alpha + i * block);
      }
    });
  });
  losses.land();
  alphas.land();
}

void ctc_loss_backward(const Tensor& grad, const Tensor& log_probs, const Tensor& targets,
                       absl::Span<const int64_t> input_lengths, absl::Span<const int64_t> target_lengths,
                       const Tensor& loss, const Tensor& log_alpha, int64_t blank, Tensor& out) {
  const Sequences q(log_probs, targets, input_lengths, target_lengths, blank);
  const Tensor x = wide(log_probs);
  const Tensor g = contiguous_as(grad, x.dtype()), nll = contiguous_as(loss, x.dtype()),
               alphas = contiguous_as(log_alpha, x.dtype());
  WideResult result(out);
  const int64_t width = log_alpha.size(2), block = log_alpha.size(1) * width;
  with_real(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    T* dx = result.tensor().data_as<T>();
    std::fill_n(dx, out.numel(), T(0));
    parallel_for(nll.numel(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const Emissions<T> p{x.data_as<T>(), nll.numel(), q.classes, i};
        backward_paths(q, i, p, width, alphas.data_as<T>() + i * block, nll.data_as<T>()[i], g.data_as<T>()[i], dx);
      }
    });
  });
  result.land();
}

}  // namespace tt::cpu
