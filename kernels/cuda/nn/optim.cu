// Fused optimizer steps: one launch updates many parameters and receives their addresses as kernel arguments.
#include <algorithm>
#include <limits>

#include "kernels/common/nn/optim.h"
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch/row.h"

namespace tt::cuda {
namespace {

constexpr int64_t kPiece = 4096;  // maximum number of elements per group

constexpr int kMaxTensors = std::tuple_size_v<Parameter>;

// Addresses of one parameter, its gradient and its states; null for an unused state. All tensors are contiguous and
// have the same dtype.
struct Entry {
  void* of[kMaxTensors] = {};
  int64_t n = 0;
  int64_t first_piece = 0;
  DType dtype = DType::kFloat32;
  bool is_aligned = true;  // whether all tensors are aligned for vectors

  Entry() = default;
  Entry(const Parameter& p, int64_t first_piece) : n(p[0].numel()), first_piece(first_piece), dtype(p[0].dtype()) {
    for (int k = 0; k < kMaxTensors; ++k) {
      of[k] = p[k] ? p[k].data() : nullptr;
      is_aligned = is_aligned && cuda::is_aligned(of[k]);
    }
  }
  template <typename T>
  TT_DEVICE T* at(int k, int64_t i) const {
    return static_cast<T*>(of[k]) + i;
  }
};

// The model parameters that one launch updates. Passed as a kernel argument, not in device memory, so that no copy is
// needed before the launch and a captured graph contains the table.
template <int kMaxEntries>
struct Table {
  Entry entries[kMaxEntries];
  int count = 0;

  // Returns the index of the entry that contains `piece`.
  TT_DEVICE int of_piece(int64_t piece) const {
    int low = 0, high = count - 1;
    while (low < high) {
      const int middle = (low + high + 1) / 2;
      if (entries[middle].first_piece <= piece) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return low;
  }
};

// The optimizers. update(x) updates one element: x[0] is the parameter, x[1] the gradient, and the other elements of x
// are the states.

// The address of an optional number.
float* number_in(const Tensor& number) { return number ? number.data_as<float>() : nullptr; }

template <bool kMoves>
struct Sgd {
  static constexpr int kTensors = kMoves ? 3 : 2;
  SgdStep step;
  SgdFactors<float> narrow;
  SgdFactors<double> wide;

  const float* found_inf;

  Sgd(const SgdStep& step, const Tensor& found_inf)
      : step(step), narrow(step), wide(step), found_inf(number_in(found_inf)) {}
  TT_DEVICE Sgd ready() const { return *this; }
  TT_DEVICE bool skips() const { return found_inf && *found_inf != 0; }
  TT_DEVICE const SgdFactors<float>& factors(float) const { return narrow; }
  TT_DEVICE const SgdFactors<double>& factors(double) const { return wide; }
  template <typename C>
  TT_DEVICE void update(C (&x)[kTensors]) const {
    const SgdFactors<C>& of = factors(C());
    C d = of.gradient(x[0], x[1]);
    if constexpr (kMoves) {
      x[2] = of.next_momentum(x[2], d);
      d = step.nesterov ? d + of.momentum * x[2] : x[2];
    }
    x[0] -= of.lr * d;
  }
};

// kCounts: only the device knows the number of the step.
template <bool kKeepsLargest, bool kCounts>
struct Adam {
  static constexpr int kTensors = kKeepsLargest ? 5 : 4;
  AdamStep step;
  AdamFactors<float> narrow;
  AdamFactors<double> wide;
  const float* found_inf;
  const float* steps;  // the number of this step

  Adam(const AdamStep& step, const Tensor& found_inf, const Tensor& steps)
      : step(step), narrow(step), wide(step), found_inf(number_in(found_inf)), steps(number_in(steps)) {}
  // The step with the factors that depend on its number.
  TT_DEVICE Adam ready() const {
    if constexpr (!kCounts) return *this;
    Adam of = *this;
    of.step.set_step(*steps);
    of.narrow = AdamFactors<float>(of.step);
    of.wide = AdamFactors<double>(of.step);
    return of;
  }
  TT_DEVICE bool skips() const { return found_inf && *found_inf != 0; }
  TT_DEVICE const AdamFactors<float>& factors(float) const { return narrow; }
  TT_DEVICE const AdamFactors<double>& factors(double) const { return wide; }
  template <typename C>
  TT_DEVICE void update(C (&x)[kTensors]) const {
    const AdamFactors<C>& of = factors(C());
    const C d = of.gradient(x[0], x[1]);
    x[2] = of.average(x[2], d);
    x[3] = of.square(x[3], d);
    if constexpr (kKeepsLargest) x[4] = x[3] > x[4] ? x[3] : x[4];
    x[0] = of.parameter(x[0], x[2], math::sqrt(x[kTensors - 1]));
  }
};

// Unscales gradients, which take the place of parameters in the table.
struct Unscale {
  static constexpr int kTensors = 1;
  float* found_inf;
  const float* inv_scale;

  TT_DEVICE Unscale ready() const { return *this; }
  TT_DEVICE bool skips() const { return false; }
  template <typename C>
  TT_DEVICE void update(C (&x)[kTensors]) const {
    if (!(math::abs(x[0]) <= std::numeric_limits<C>::max())) *found_inf = 1;  // every writer stores the same value
    x[0] *= static_cast<C>(*inv_scale);
  }
};

// Updates kLanes adjacent elements, that is, one vector or one element.
template <typename T, int kLanes, typename Step>
TT_DEVICE void update(const Step& step, const Entry& e, int64_t i) {
  using C = AccumulateType<T>;
  constexpr int kTensors = Step::kTensors;
  Vector<T, kLanes> vectors[kTensors];
  TT_UNROLL
  for (int k = 0; k < kTensors; ++k) vectors[k] = load_raw<T, kLanes>(e.at<T>(k, 0), 1, i);
  Lanes<C, kLanes> lanes[kTensors];
  TT_UNROLL
  for (int k = 0; k < kTensors; ++k) lanes[k] = lanes_of<C>(vectors[k]);
  TT_UNROLL
  for (int l = 0; l < kLanes; ++l) {
    C x[kTensors];
    TT_UNROLL
    for (int k = 0; k < kTensors; ++k) x[k] = lanes[k].at[l];
    step.update(x);
    TT_UNROLL
    for (int k = 0; k < kTensors; ++k) lanes[k].at[l] = x[k];
  }
  TT_UNROLL
  for (int k = 0; k < kTensors; ++k) {
    if (k != 1) store_lanes<T, kLanes>(e.at<T>(k, 0), 1, i, lanes[k]);
  }
}

// Updates a group's piece of a parameter: elements [begin, end).
template <typename T, typename Step>
TT_DEVICE void update_piece(const Step& step, const Entry& e, const Group& group, int64_t begin, int64_t end) {
  constexpr int kLanes = kVectorLanes<T>;
  const int64_t vector_end = e.is_aligned ? begin + (end - begin) / kLanes * kLanes : begin;
  TT_ROLLED
  for (int64_t i = begin + group.rank() * kLanes; i < vector_end; i += group.size() * kLanes) {
    update<T, kLanes>(step, e, i);
  }
  TT_ROLLED
  for (int64_t i = vector_end + group.rank(); i < end; i += group.size()) update<T, 1>(step, e, i);
}

template <typename Step, int kMaxEntries>
void launch(const Queue& queue, int64_t pieces, Table<kMaxEntries> table, Step given) {
  for_each_group(queue, pieces, kPiece, [=] TT_DEVICE(Group & group) {
    if (given.skips()) return;
    const Step step = given.ready();
    const Entry& e = table.entries[table.of_piece(group.index())];
    const int64_t begin = (group.index() - e.first_piece) * kPiece;
    const int64_t end = begin + kPiece < e.n ? begin + kPiece : e.n;
    switch (e.dtype) {
      case DType::kFloat64: return update_piece<double>(step, e, group, begin, end);
      case DType::kFloat16: return update_piece<Half>(step, e, group, begin, end);
      case DType::kBFloat16: return update_piece<BFloat16>(step, e, group, begin, end);
      default: return update_piece<float>(step, e, group, begin, end);
    }
  });
}

// Updates parameters [begin, end), at most kMaxEntries of them.
template <int kMaxEntries, typename Step>
void launch_some(const Queue& queue, const std::vector<Parameter>& of, size_t begin, size_t end, const Step& step) {
  Table<kMaxEntries> table;
  int64_t pieces = 0;
  for (size_t i = begin; i < end; ++i) {
    const Entry entry(of[i], pieces);
    if (entry.n == 0) continue;
    table.entries[table.count++] = entry;
    pieces += (entry.n + kPiece - 1) / kPiece;
  }
  launch(queue, pieces, table, step);
}

template <typename Step>
void run(const std::vector<Parameter>& of, const Step& step) {
  constexpr size_t kFew = 32, kMany = 256;  // 3 KiB and 25 KiB of arguments; the limit is 32 KiB
  if (of.empty()) return;
  std::vector<Parameter> packed = of;
  for (Parameter& p : packed) {
    for (Tensor& t : p) t = contiguous(t);
  }
  const Queue queue = queue_of(of[0][0]);
  if (packed.size() <= kFew) {
    launch_some<kFew>(queue, packed, 0, packed.size(), step);
  } else {
    for (size_t i = 0; i < packed.size(); i += kMany) {
      launch_some<kMany>(queue, packed, i, std::min(packed.size(), i + kMany), step);
    }
  }
  for (size_t i = 0; i < of.size(); ++i) write_back(&copy, packed[i], of[i]);
}

}  // namespace

void sgd_step(const Tensors& params, const Tensors& grads, const Tensors& momentum_buffers, double lr, double momentum,
              double dampening, double weight_decay, bool nesterov, bool maximize, bool first_step,
              const Tensor& found_inf) {
  const SgdStep step{lr, momentum, dampening, weight_decay, nesterov, maximize, first_step};
  const std::vector<Parameter> of = parameters(params, {&grads, &momentum_buffers});
  momentum_buffers.empty() ? run(of, Sgd<false>(step, found_inf)) : run(of, Sgd<true>(step, found_inf));
}

void adam_step(const Tensors& params, const Tensors& grads, const Tensors& exp_avgs, const Tensors& exp_avg_sqs,
               const Tensors& max_exp_avg_sqs, int64_t step, double lr, double beta1, double beta2, double eps,
               double weight_decay, bool decoupled, bool amsgrad, bool maximize, const Tensor& found_inf,
               const Tensor& steps) {
  check_averages(params, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, amsgrad);
  const Tensors none;
  const AdamStep now = adam_step_of(step, lr, beta1, beta2, eps, weight_decay, decoupled, maximize);
  const std::vector<Parameter> of =
      parameters(params, {&grads, &exp_avgs, &exp_avg_sqs, amsgrad ? &max_exp_avg_sqs : &none});
  if (steps) {
    float* count = number_in(steps);
    const float* found = number_in(found_inf);
    for_each(queue_of(steps), 1, [=] TT_DEVICE(int64_t) { *count += found && *found != 0 ? 0 : 1; });
  }
  if (steps) {
    amsgrad ? run(of, Adam<true, true>(now, found_inf, steps)) : run(of, Adam<false, true>(now, found_inf, steps));
  } else {
    amsgrad ? run(of, Adam<true, false>(now, found_inf, steps)) : run(of, Adam<false, false>(now, found_inf, steps));
  }
}

void amp_unscale(const Tensors& grads, const Tensor& found_inf, const Tensor& inv_scale) {
  std::vector<Parameter> of;
  for (const Tensor& grad : grads) of.push_back({grad});
  run(of, Unscale{number_in(found_inf), number_in(inv_scale)});
}

void amp_update_scale(const Tensor& scale, const Tensor& growth_tracker, const Tensor& found_inf, double growth_factor,
                      double backoff_factor, int64_t growth_interval) {
  float* value = number_in(scale);
  int32_t* tracker = growth_tracker.data_as<int32_t>();
  const float* found = number_in(found_inf);
  for_each(queue_of(scale), 1, [=] TT_DEVICE(int64_t) {
    const LossScale next =
        LossScale{*value, *tracker}.next(*found != 0, growth_factor, backoff_factor, growth_interval);
    *value = next.scale;
    *tracker = next.growth_tracker;
  });
}

}  // namespace tt::cuda
