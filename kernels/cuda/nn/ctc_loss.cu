// ctc_loss: one group of threads per sequence, which processes all states of a time step in parallel.
#include "kernels/common/nn/ctc_alignments.h"
#include "kernels/cuda/iteration/atomic_accumulate.h"
#include "kernels/cuda/iteration/fill.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch/atomic.h"
#include "kernels/cuda/launch/device_error.h"

namespace tt::cuda {
namespace {

Error label_out_of_range(const DeviceErrorCell& cell) {
  return Error(ErrorKind::kRuntime, label_error(cell.values[0], cell.values[2]));
}

// The sequences of a batch, in the form in which they are passed to kernels.
struct Sequences {
  const int64_t *steps, *lengths, *starts;  // input length, target length and start in the targets, per sequence
  const int64_t* labels;                    // label of each state; `width` per sequence
  int64_t batch, classes, width, times, blank;

  TT_DEVICE Alignments alignments(int64_t i) const { return {labels + i * width, 2 * lengths[i] + 1, blank}; }
  // Returns the offset of the log probabilities of sequence i at time t, one per class.
  TT_FUNCTION int64_t emissions(int64_t t, int64_t i) const { return (t * batch + i) * classes; }
};

// Writes the label of each state. An invalid label is reported and treated as a blank.
void find_labels(const Queue& queue, Sequences q, const int64_t* targets, int64_t* labels) {
  DeviceErrorCell* cell = open_error_cell(queue, &label_out_of_range);
  for_each_group(queue, q.batch, q.width, [=] TT_DEVICE(Group & group) {
    const int64_t i = group.index();
    for (int64_t s = group.rank(); s < q.width; s += group.size()) {
      int64_t label = q.blank;
      if (s % 2 == 1 && s / 2 < q.lengths[i]) label = targets[q.starts[i] + s / 2];
      if (label < 0 || label >= q.classes) {
        report_error(cell, label, 0, q.classes);
        label = q.blank;
      }
      labels[i * q.width + s] = label;
    }
  });
}

// Sequences, and the tensors that own their data.
struct Batch {
  Tensor lengths, targets, labels;
  Sequences sequences;

  Batch(const Tensor& log_probs, const Tensor& target, absl::Span<const int64_t> input_lengths,
        absl::Span<const int64_t> target_lengths, const Tensor& log_alpha, int64_t blank)
      : lengths(empty({{3, log_probs.size(1)}}, DType::kInt64, log_probs.device())),
        targets(contiguous_as(target, DType::kInt64)),
        labels(empty({{log_probs.size(1), log_alpha.size(2)}}, DType::kInt64, log_probs.device())) {
    const std::vector<int64_t> starts = label_starts(target, target_lengths);
    upload(lengths, [&](void* to) {
      int64_t* at = static_cast<int64_t*>(to);
      at = std::copy(input_lengths.begin(), input_lengths.end(), at);
      at = std::copy(target_lengths.begin(), target_lengths.end(), at);
      std::copy(starts.begin(), starts.end(), at);
    });
    const int64_t* at = lengths.data_as<int64_t>();
    const int64_t batch = log_probs.size(1);
    sequences = {at,    at + batch,        at + 2 * batch,    labels.data_as<int64_t>(),
                 batch, log_probs.size(2), log_alpha.size(2), log_alpha.size(1),
                 blank};
    find_labels(queue_of(log_probs), sequences, targets.data_as<int64_t>(), labels.data_as<int64_t>());
  }
};

// Computes alpha[t][s]: the log probability of all paths that are in state s at time t.
template <typename T>
void forward_paths(const Queue& queue, Sequences q, const T* log_probs, T* losses, T* alphas) {
  for_each_group(queue, q.batch, q.width, [=] TT_DEVICE(Group & group) {
    const int64_t i = group.index(), steps = q.steps[i];
    const Alignments paths = q.alignments(i);
    T* alpha = alphas + i * q.times * q.width;
    for (int64_t t = 0; t < q.times; ++t) {
      const T* p = log_probs + q.emissions(t, i);
      for (int64_t s = group.rank(); s < q.width; s += group.size()) {
        const bool is_state = t < steps && s < paths.states;
        T sum = -math::kInf<T>;
        if (is_state && t == 0 && s < 2) sum = p[paths.labels[s]];
        if (is_state && t > 0) sum = paths.forward_sum(alpha + (t - 1) * q.width, s) + p[paths.labels[s]];
        alpha[t * q.width + s] = sum;
      }
      group.sync();
    }
    if (group.rank() != 0) return;
    losses[i] = steps == 0 ? paths.loss_without_steps<T>() : paths.loss(alpha + (steps - 1) * q.width);
  });
}

// Subtracts from `grads`, initially zeros, the fraction of paths that emit each class at each time, times the gradient
// `g` of the loss. `betas` is scratch memory for the states of two time steps per sequence.
template <typename T>
void backward_paths(const Queue& queue, Sequences q, const T* log_probs, const T* alphas, const T* losses, const T* g,
                    T* betas, T* grads) {
  for_each_group(queue, q.batch, q.width, [=] TT_DEVICE(Group & group) {
    const int64_t i = group.index();
    if (losses[i] == math::kInf<T>) return;
    const Alignments paths = q.alignments(i);
    T *beta = betas + i * 2 * q.width, *before = beta + q.width;
    for (int64_t s = group.rank(); s < paths.states; s += group.size()) {
      beta[s] = s + 2 >= paths.states ? T(0) : -math::kInf<T>;
    }
    for (int64_t t = q.steps[i] - 1; t >= 0; --t) {
      group.sync();
      const int64_t at = q.emissions(t, i);
      for (int64_t s = group.rank(); s < paths.states; s += group.size()) {
        const T share = alphas[(i * q.times + t) * q.width + s] + beta[s] + losses[i];
        atomic_add(grads + at + paths.labels[s], -g[i] * math::exp(share));
        before[s] = paths.backward_sum(beta, log_probs + at, s);
      }
      T* const last = beta;
      beta = before;
      before = last;
    }
  });
}

}  // namespace

void ctc_loss_forward(const Tensor& log_probs, const Tensor& targets, absl::Span<const int64_t> input_lengths,
                      absl::Span<const int64_t> target_lengths, int64_t blank, Tensor& loss, Tensor& log_alpha) {
  const Batch batch(log_probs, targets, input_lengths, target_lengths, log_alpha, blank);
  const Tensor x = contiguous_as(log_probs, accumulate_type(log_probs.dtype()));
  const AccumulateBuffer losses(loss), alphas(log_alpha);
  with_real(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    forward_paths<T>(queue_of(loss), batch.sequences, x.data_as<T>(), losses.data<T>(), alphas.data<T>());
  });
  losses.copy_to_output();
  alphas.copy_to_output();
}

void ctc_loss_backward(const Tensor& grad, const Tensor& log_probs, const Tensor& targets,
                       absl::Span<const int64_t> input_lengths, absl::Span<const int64_t> target_lengths,
                       const Tensor& loss, const Tensor& log_alpha, int64_t blank, Tensor& out) {
  const Batch batch(log_probs, targets, input_lengths, target_lengths, log_alpha, blank);
  const DType dtype = accumulate_type(log_probs.dtype());
  const Tensor x = contiguous_as(log_probs, dtype), g = contiguous_as(grad, dtype), nll = contiguous_as(loss, dtype),
               alphas = contiguous_as(log_alpha, dtype);
  const Tensor betas = empty({{x.size(1), 2, log_alpha.size(2)}}, dtype, x.device());
  const AccumulateBuffer result(out);
  fill_with(result.tensor(), 0);
  with_real(dtype, [&]<typename T>(std::type_identity<T>) {
    backward_paths<T>(queue_of(out), batch.sequences, x.data_as<T>(), alphas.data_as<T>(), nll.data_as<T>(),
                      g.data_as<T>(), betas.data_as<T>(), result.data<T>());
  });
  result.copy_to_output();
}

}  // namespace tt::cuda
