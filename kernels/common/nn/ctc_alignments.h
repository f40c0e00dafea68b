// The forward and backward recurrences of connectionist temporal classification (Graves et al., ICML 2006), in log
// space.
#pragma once

#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/tensor/tensor.h"
#include "kernels/common/math/scalar_math.h"

namespace tt {

// The offset of each sequence's labels: `targets` has one row per sequence, or is all sequences concatenated.
inline std::vector<int64_t> label_starts(const Tensor& targets, absl::Span<const int64_t> lengths) {
  std::vector<int64_t> starts;
  int64_t at = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    starts.push_back(targets.dim() == 2 ? static_cast<int64_t>(i) * targets.size(1) : at);
    at += lengths[i];
  }
  return starts;
}

inline std::string label_error(int64_t label, int64_t classes) {
  return absl::StrCat("targets must be in [0, ", classes, "), got ", label);
}

template <typename T>
TT_HOST_DEVICE T log_add(T a, T b) {
  const T high = a < b ? b : a, low = a < b ? a : b;
  return low == -math::kInf<T> ? high : high + math::log1p(math::exp(low - high));
}

// The states of one sequence: its labels with blanks between, before and after them.
struct Alignments {
  const int64_t* labels;  // the label of each state
  int64_t states, blank;

  // Whether a path may enter state s from s - 2, skipping the blank between two different labels.
  TT_HOST_DEVICE bool can_skip_to(int64_t s) const {
    return s >= 2 && s < states && labels[s] != blank && labels[s] != labels[s - 2];
  }
  // Log of the total probability of all paths that reach state s, without the emission at s. `before` holds these logs
  // for all states at the previous time step, with emissions.
  template <typename T>
  TT_HOST_DEVICE T forward_sum(const T* before, int64_t s) const {
    T sum = before[s];
    if (s >= 1) sum = log_add(sum, before[s - 1]);
    return can_skip_to(s) ? log_add(sum, before[s - 2]) : sum;
  }
  // Log of the total probability of all paths that continue from state s. `after` holds these logs for all states at
  // the next time step, `p` that step's log probability per class.
  template <typename T>
  TT_HOST_DEVICE T backward_sum(const T* after, const T* p, int64_t s) const {
    T sum = after[s] + p[labels[s]];
    if (s + 1 < states) sum = log_add(sum, after[s + 1] + p[labels[s + 1]]);
    return can_skip_to(s + 2) ? log_add(sum, after[s + 2] + p[labels[s + 2]]) : sum;
  }
  // The loss, given the logs of the total probabilities of all states at the last time step.
  template <typename T>
  TT_HOST_DEVICE T loss(const T* last) const {
    return -(states > 1 ? log_add(last[states - 1], last[states - 2]) : last[0]);
  }
  // The loss of an input without time steps.
  template <typename T>
  TT_HOST_DEVICE T loss_without_steps() const {
    return states == 1 ? T(0) : math::kInf<T>;
  }
};

}  // namespace tt
