// The fused optimizer steps: all parameters in one launch, which finds them in its arguments.
#include <algorithm>

#include "kernels/common/optim_step.h"
#include "kernels/common/parameters.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch/floating.h"

namespace tt::cuda {
namespace {

constexpr int64_t kPiece = 4096;  // elements of a group

// One parameter with its gradient and states; null where a state is not kept. Contiguous.
struct Entry {
  Access param, grad, states[3];
  int64_t n;
  int64_t first_piece;

  Entry() : param(nullptr, DType::kFloat32), grad(param), states{param, param, param}, n(0), first_piece(0) {}
  Entry(const Parameter& p, int64_t first_piece)
      : param(p[0]),
        grad(p[1]),
        states{Weights(p[2]).access, Weights(p[3]).access, Weights(p[4]).access},
        n(p[0].numel()),
        first_piece(first_piece) {}
};

// Arguments and not memory: nothing has to be copied before the launch, and a captured graph keeps them.
template <int kMost>
struct Table {
  Entry entries[kMost];
  int count = 0;

  // The last one that starts at or before a piece.
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

struct Sgd {
  SgdStep step;
  SgdFactors<float> narrow;
  SgdFactors<double> wide;

  explicit Sgd(const SgdStep& step) : step(step), narrow(step), wide(step) {}
  TT_DEVICE const SgdFactors<float>& factors(float) const { return narrow; }
  TT_DEVICE const SgdFactors<double>& factors(double) const { return wide; }
  template <typename C>
  TT_DEVICE void update(const Entry& e, int64_t i) const {
    const SgdFactors<C>& of = factors(C());
    const C p = e.param.load<C>(i);
    C d = of.gradient(p, e.grad.load<C>(i));
    if (e.states[0].data) {
      const C m = of.moved(of.first ? C(0) : e.states[0].load<C>(i), d);
      e.states[0].store(i, m);
      d = step.nesterov ? d + of.momentum * m : m;
    }
    e.param.store(i, p - of.lr * d);
  }
};

struct Adam {
  AdamFactors<float> narrow;
  AdamFactors<double> wide;

  explicit Adam(const AdamStep& step) : narrow(step), wide(step) {}
  TT_DEVICE const AdamFactors<float>& factors(float) const { return narrow; }
  TT_DEVICE const AdamFactors<double>& factors(double) const { return wide; }
  template <typename C>
  TT_DEVICE void update(const Entry& e, int64_t i) const {
    const AdamFactors<C>& of = factors(C());
    const C p = e.param.load<C>(i), d = of.gradient(p, e.grad.load<C>(i));
    const C a = of.average(e.states[0].load<C>(i), d);
    C s = of.square(e.states[1].load<C>(i), d);
    e.states[0].store(i, a);
    e.states[1].store(i, s);
    if (e.states[2].data) {
      const C most = e.states[2].load<C>(i);
      s = s > most ? s : most;
      e.states[2].store(i, s);
    }
    e.param.store(i, of.parameter(p, a, math::sqrt(s)));
  }
};

template <typename Step, int kMost>
void launch(const Queue& queue, int64_t pieces, Table<kMost> table, Step step) {
  for_each_group(queue, pieces, kPiece, [=] TT_DEVICE(Group& group) {
    const Entry& e = table.entries[table.of_piece(group.index())];
    const int64_t begin = (group.index() - e.first_piece) * kPiece;
    const int64_t end = begin + kPiece < e.n ? begin + kPiece : e.n;
    if (e.param.dtype == DType::kFloat64) {
      for (int64_t i = begin + group.rank(); i < end; i += group.size()) step.template update<double>(e, i);
    } else {
      for (int64_t i = begin + group.rank(); i < end; i += group.size()) step.template update<float>(e, i);
    }
  });
}

// Parameters [begin, end), of which there are at most kMost.
template <int kMost, typename Step>
void launch_some(const Queue& queue, const std::vector<Parameter>& of, size_t begin, size_t end, const Step& step) {
  Table<kMost> table;
  int64_t pieces = 0;
  for (size_t i = begin; i < end; ++i) {
    const Entry entry(of[i], pieces);
    if (entry.n == 0) continue;
    table.entries[table.count++] = entry;
    pieces += (entry.n + kPiece - 1) / kPiece;
  }
  launch(queue, pieces, table, step);
}

// The contiguous copies, where there had to be some, into what they were copied from.
void write_back(const Parameter& packed, const Parameter& original) {
  for (size_t i = 0; i < packed.size(); ++i) {
    if (i != 1 && packed[i] && !packed[i].same(original[i])) copy(packed[i], original[i]);
  }
}

template <typename Step>
void run(const std::vector<Parameter>& of, const Step& step) {
  constexpr size_t kFew = 32, kMany = 256;  // 3 KiB and 25 KiB of arguments, of the 32 KiB that a launch takes
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
  for (size_t i = 0; i < of.size(); ++i) write_back(packed[i], of[i]);
}

}  // namespace

void sgd_step(const Tensors& params, const Tensors& grads, const Tensors& momentum_buffers, double lr, double momentum,
              double dampening, double weight_decay, bool nesterov, bool maximize, bool first_step) {
  run(parameters(params, {&grads, &momentum_buffers}),
      Sgd({lr, momentum, dampening, weight_decay, nesterov, maximize, first_step}));
}

void adam_step(const Tensors& params, const Tensors& grads, const Tensors& exp_avgs, const Tensors& exp_avg_sqs,
               const Tensors& max_exp_avg_sqs, int64_t step, double lr, double beta1, double beta2, double eps,
               double weight_decay, bool decoupled, bool amsgrad, bool maximize) {
  check_averages(params, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, amsgrad);
  const Tensors none;
  run(parameters(params, {&grads, &exp_avgs, &exp_avg_sqs, amsgrad ? &max_exp_avg_sqs : &none}),
      Adam(adam_step_of(step, lr, beta1, beta2, eps, weight_decay, decoupled, maximize)));
}

}  // namespace tt::cuda
