// The optimizers' arithmetic for one element: PyTorch's algorithms, for every backend.
#pragma once

#include <cmath>

#include "kernels/common/math/scalar_math.h"

namespace tt {

struct SgdStep {
  double lr;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool maximize = false;
  bool first = false;  // the momentum buffer holds nothing yet
};

struct AdamStep {
  double lr;
  double beta1;
  double beta2;
  double eps;
  double weight_decay = 0;
  bool decoupled = false;  // AdamW: the decay is of the parameter, not in the gradient
  bool maximize = false;
  double correction1 = 1;  // 1 - beta1^t
  double correction2 = 1;  // 1 - beta2^t
};

inline AdamStep adam_step_of(int64_t step, double lr, double beta1, double beta2, double eps, double weight_decay,
                             bool decoupled, bool maximize) {
  const double t = static_cast<double>(step);
  return {lr, beta1, beta2, eps, weight_decay, decoupled, maximize, 1 - std::pow(beta1, t), 1 - std::pow(beta2, t)};
}

// What a step multiplies with, in the type that it computes in.
template <typename T>
struct SgdFactors {
  T lr, decay, sign, keep, momentum, take;
  bool first;

  explicit SgdFactors(const SgdStep& step)
      : lr(static_cast<T>(step.lr)),
        decay(static_cast<T>(step.weight_decay)),
        sign(step.maximize ? T(-1) : T(1)),
        keep(static_cast<T>(step.first ? 0 : step.momentum)),
        momentum(static_cast<T>(step.momentum)),
        take(static_cast<T>(step.first ? 1 : 1 - step.dampening)),
        first(step.first) {}

  TT_HOST_DEVICE T gradient(T p, T g) const { return sign * g + decay * p; }
  // The new momentum. A new buffer's bytes may be anything, NaN too: times 0 they must not matter.
  TT_HOST_DEVICE T moved(T m, T d) const { return first ? d : keep * m + take * d; }
};

template <typename T>
struct AdamFactors {
  T sign, l2, shrink, take1, beta2, take2, eps, size, unbias;

  explicit AdamFactors(const AdamStep& step)
      : sign(step.maximize ? T(-1) : T(1)),
        l2(static_cast<T>(step.decoupled ? 0 : step.weight_decay)),
        shrink(static_cast<T>(step.decoupled ? 1 - step.lr * step.weight_decay : 1)),
        take1(static_cast<T>(1 - step.beta1)),
        beta2(static_cast<T>(step.beta2)),
        take2(static_cast<T>(1 - step.beta2)),
        eps(static_cast<T>(step.eps)),
        size(static_cast<T>(step.lr / step.correction1)),
        unbias(static_cast<T>(1 / std::sqrt(step.correction2))) {}

  TT_HOST_DEVICE T gradient(T p, T g) const { return sign * g + l2 * p; }
  TT_HOST_DEVICE T average(T a, T d) const { return a + take1 * (d - a); }
  TT_HOST_DEVICE T square(T s, T d) const { return beta2 * s + take2 * d * d; }
  TT_HOST_DEVICE T parameter(T p, T a, T root) const { return shrink * p - size * a / (root * unbias + eps); }
};

}  // namespace tt
