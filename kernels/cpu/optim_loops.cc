#include "kernels/cpu/optim_loops.h"

#include <cmath>

#include "kernels/cpu/clones.h"

namespace tt::cpu {
namespace {

template <typename T>
[[gnu::always_inline]] inline T root(T x) {
  if constexpr (sizeof(T) == 4)
    return __builtin_sqrtf(x);
  else
    return __builtin_sqrt(x);
}

// Which of the optional parts there are is decided outside the loop.
template <bool kMomentum, bool kNesterov, typename T>
[[gnu::always_inline]] inline void sgd_loop(int64_t n, const SgdStep& step, T* __restrict p, const T* __restrict g,
                                            T* __restrict m) {
  const T lr = static_cast<T>(step.lr), decay = static_cast<T>(step.weight_decay);
  const T sign = step.maximize ? T(-1) : T(1);
  const T keep = static_cast<T>(step.first ? 0 : step.momentum), momentum = static_cast<T>(step.momentum);
  const T take = static_cast<T>(step.first ? 1 : 1 - step.dampening);
  for (int64_t i = 0; i < n; ++i) {
    T d = sign * g[i] + decay * p[i];
    if constexpr (kMomentum) {
      // A new buffer's bytes may be anything, NaN too: times 0 they must not matter.
      m[i] = step.first ? d : keep * m[i] + take * d;
      d = kNesterov ? d + momentum * m[i] : m[i];
    }
    p[i] -= lr * d;
  }
}

template <typename T>
[[gnu::always_inline]] inline void sgd_of(int64_t n, const SgdStep& step, const SgdPiece<T>& x) {
  if (!x.momentum) return sgd_loop<false, false>(n, step, x.param, x.grad, x.momentum);
  if (step.nesterov) return sgd_loop<true, true>(n, step, x.param, x.grad, x.momentum);
  sgd_loop<true, false>(n, step, x.param, x.grad, x.momentum);
}

template <bool kLargest, typename T>
[[gnu::always_inline]] inline void adam_loop(int64_t n, const AdamStep& step, T* __restrict p, const T* __restrict g,
                                             T* __restrict average, T* __restrict square, T* __restrict largest) {
  const T sign = step.maximize ? T(-1) : T(1);
  const T l2 = static_cast<T>(step.decoupled ? 0 : step.weight_decay);
  const T shrink = static_cast<T>(step.decoupled ? 1 - step.lr * step.weight_decay : 1);
  const T take1 = static_cast<T>(1 - step.beta1), beta2 = static_cast<T>(step.beta2);
  const T take2 = static_cast<T>(1 - step.beta2), eps = static_cast<T>(step.eps);
  const T size = static_cast<T>(step.lr / step.correction1), unbias = static_cast<T>(1 / std::sqrt(step.correction2));
  for (int64_t i = 0; i < n; ++i) {
    const T d = sign * g[i] + l2 * p[i];
    const T a = average[i] + take1 * (d - average[i]);
    T s = beta2 * square[i] + take2 * d * d;
    average[i] = a;
    square[i] = s;
    if constexpr (kLargest) largest[i] = s = s > largest[i] ? s : largest[i];
    p[i] = shrink * p[i] - size * a / (root(s) * unbias + eps);
  }
}

template <typename T>
[[gnu::always_inline]] inline void adam_of(int64_t n, const AdamStep& step, const AdamPiece<T>& x) {
  if (x.largest) return adam_loop<true>(n, step, x.param, x.grad, x.average, x.square, x.largest);
  adam_loop<false>(n, step, x.param, x.grad, x.average, x.square, x.largest);
}

}  // namespace

TT_CLONES void sgd(int64_t n, const SgdStep& step, const SgdPiece<float>& piece) { sgd_of(n, step, piece); }
TT_CLONES void sgd(int64_t n, const SgdStep& step, const SgdPiece<double>& piece) { sgd_of(n, step, piece); }
TT_CLONES void adam(int64_t n, const AdamStep& step, const AdamPiece<float>& piece) { adam_of(n, step, piece); }
TT_CLONES void adam(int64_t n, const AdamStep& step, const AdamPiece<double>& piece) { adam_of(n, step, piece); }

}  // namespace tt::cpu
