#include "kernels/cpu/loops/optim_loops.h"

#include <cmath>

#include "kernels/cpu/loops/clones.h"

namespace tt::cpu {
namespace {

template <typename T>
[[gnu::always_inline]] inline T root(T x) {
  if constexpr (sizeof(T) == 4)
    return __builtin_sqrtf(x);
  else
    return __builtin_sqrt(x);
}

// Optional terms are template parameters, so that the loop has no branches.
template <bool kMomentum, bool kNesterov, typename T>
[[gnu::always_inline]] inline void sgd_loop(int64_t n, const SgdStep& step, T* __restrict p, const T* __restrict g,
                                            T* __restrict m) {
  const SgdFactors<T> of(step);
  for (int64_t i = 0; i < n; ++i) {
    T d = of.gradient(p[i], g[i]);
    if constexpr (kMomentum) {
      m[i] = of.next_momentum(m[i], d);
      d = kNesterov ? d + of.momentum * m[i] : m[i];
    }
    p[i] -= of.lr * d;
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
  const AdamFactors<T> of(step);
  for (int64_t i = 0; i < n; ++i) {
    const T d = of.gradient(p[i], g[i]), a = of.average(average[i], d);
    T s = of.square(square[i], d);
    average[i] = a;
    square[i] = s;
    if constexpr (kLargest) largest[i] = s = s > largest[i] ? s : largest[i];
    p[i] = of.parameter(p[i], a, root(s));
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
