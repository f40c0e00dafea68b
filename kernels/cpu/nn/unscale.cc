// amp_unscale: checks gradients for infinities and NaN and multiplies them by a number, in one pass.
#include <algorithm>
#include <atomic>
#include <bit>
#include <limits>
#include <type_traits>

#include "engine/device/parallel.h"
#include "kernels/cpu/iteration/accumulate_type.h"
#include "kernels/cpu/iteration/copy.h"
#include "kernels/cpu/kernels.h"

namespace tt::cpu {
namespace {

constexpr int64_t kPiece = 1 << 14;  // elements per task

// Multiplies n elements by `factor`. Returns whether one of them was not finite. Tests the exponent's bits, because
// such a loop is vectorised.
template <typename T>
bool unscale(int64_t n, T* x, T factor) {
  using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  constexpr Bits kExponent = std::bit_cast<Bits>(std::numeric_limits<T>::infinity());
  Bits found = 0;
  if (factor == T(1)) {
    for (int64_t i = 0; i < n; ++i) found |= (std::bit_cast<Bits>(x[i]) & kExponent) == kExponent;
    return found != 0;
  }
  for (int64_t i = 0; i < n; ++i) {
    found |= (std::bit_cast<Bits>(x[i]) & kExponent) == kExponent;
    x[i] *= factor;
  }
  return found != 0;
}

template <typename T>
bool unscale_all(const Tensor& grad, float factor) {
  std::atomic<bool> found = false;
  T* x = grad.data_as<T>();
  const int64_t n = grad.numel();
  parallel_for((n + kPiece - 1) / kPiece, 4, [&](int64_t begin, int64_t end) {
    const int64_t first = begin * kPiece, last = std::min(end * kPiece, n);
    if (unscale<T>(last - first, x + first, factor)) found.store(true, std::memory_order_relaxed);
  });
  return found;
}

}  // namespace

void amp_unscale(const Tensors& grads, const Tensor& found_inf, const Tensor& inv_scale) {
  const float factor = inv_scale.data_as<float>()[0];
  for (const Tensor& grad : grads) {
    const Tensor computed = as_accumulate_type(grad);
    const bool found = computed.dtype() == DType::kFloat64 ? unscale_all<double>(computed, factor)
                                                           : unscale_all<float>(computed, factor);
    if (found) found_inf.data_as<float>()[0] = 1;
    if (factor != 1 && !computed.same(grad)) copy(computed, grad);
  }
}

}  // namespace tt::cpu
