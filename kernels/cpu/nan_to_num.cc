// nan_to_num: its defaults are the limits of the tensor's own dtype, which a body does not know.

#include "engine/parallel.h"
#include "kernels/cpu/clones.h"
#include "kernels/cpu/copy.h"
#include "kernels/common/element.h"
#include "kernels/common/limits.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/parts.h"

namespace tt::cpu {

namespace {

template <typename T>
[[gnu::always_inline]] inline void replace(T* values, int64_t n, T nan, T above, T below) {
  for (int64_t i = 0; i < n; ++i) {
    const auto v = values[i];
    const bool infinite = v - v != 0;  // NaN as well
    values[i] = v != v ? nan : !infinite ? v : v > 0 ? above : below;
  }
}

TT_CLONES void replace_all(Half* v, int64_t n, Half nan, Half above, Half below) { replace(v, n, nan, above, below); }
TT_CLONES void replace_all(BFloat16* v, int64_t n, BFloat16 nan, BFloat16 above, BFloat16 below) {
  replace(v, n, nan, above, below);
}
TT_CLONES void replace_all(float* v, int64_t n, float nan, float above, float below) {
  replace(v, n, nan, above, below);
}
TT_CLONES void replace_all(double* v, int64_t n, double nan, double above, double below) {
  replace(v, n, nan, above, below);
}

}  // namespace

void nan_to_num(const Tensor& input, double nan, std::optional<double> posinf, std::optional<double> neginf,
                Tensor& out) {
  copy(input, out);
  if (is_complex(out.dtype())) {  // each part for itself
    Tensor both = parts(out);
    return nan_to_num(both, nan, posinf, neginf, both);
  }
  if (!is_floating(out.dtype())) return;
  const double limit = highest(out.dtype()), above = posinf.value_or(limit), below = neginf.value_or(-limit);
  with_element(out.dtype(), [&]<typename T>(std::type_identity<T>) {
    if constexpr (!std::is_integral_v<T> && !std::is_same_v<T, Bool>) {
      T* values = out.data_as<T>();
      parallel_for(out.numel(), 1 << 15, [&](int64_t begin, int64_t end) {
        replace_all(values + begin, end - begin, T(nan), T(above), T(below));
      });
    }
  });
}

}  // namespace tt::cpu
