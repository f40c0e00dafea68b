// nan_to_num. It has a kernel instead of a `body:`, because its defaults depend on the tensor's dtype.

#include "kernels/common/pointwise/nan_to_num.h"
#include "engine/device/parallel.h"
#include "kernels/common/iteration/element.h"
#include "kernels/cpu/iteration/complex_as_real.h"
#include "kernels/cpu/iteration/copy.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/loops/clones.h"

namespace tt::cpu {

namespace {

// `to` may equal `from`.
template <typename T>
[[gnu::always_inline]] inline void replace(const T* from, int64_t n, const Replacements<T>& with, T* to) {
  const Replacements<T> w = with;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const T v = from[i];
    const bool infinite = v - v != 0;  // also true for NaN
    to[i] = v != v ? w.nan : !infinite ? v : v > 0 ? w.above : w.below;
  }
}

TT_CLONES void replace_all(const Half* from, int64_t n, const Replacements<Half>& with, Half* to) {
  replace(from, n, with, to);
}
TT_CLONES void replace_all(const BFloat16* from, int64_t n, const Replacements<BFloat16>& with, BFloat16* to) {
  replace(from, n, with, to);
}
TT_CLONES void replace_all(const float* from, int64_t n, const Replacements<float>& with, float* to) {
  replace(from, n, with, to);
}
TT_CLONES void replace_all(const double* from, int64_t n, const Replacements<double>& with, double* to) {
  replace(from, n, with, to);
}

}  // namespace

void nan_to_num(const Tensor& input, double nan, std::optional<double> posinf, std::optional<double> neginf,
                Tensor& out) {
  if (is_complex(out.dtype())) {  // replaces each part separately
    copy(input, out);
    Tensor both = parts(out);
    return nan_to_num(both, nan, posinf, neginf, both);
  }
  const bool in_order = is_floating(out.dtype()) && input.dtype() == out.dtype() && input.is_contiguous();
  if (!in_order) copy(input, out);
  if (!is_floating(out.dtype())) return;
  const Replacements<double> all = replacements(out.dtype(), nan, posinf, neginf);
  with_element(out.dtype(), [&]<typename T>(std::type_identity<T>) {
    if constexpr (!std::is_integral_v<T> && !std::is_same_v<T, Bool>) {
      const T* from = in_order ? input.data_as<const T>() : out.data_as<const T>();
      T* to = out.data_as<T>();
      const Replacements<T> with{T(all.nan), T(all.above), T(all.below)};
      parallel_for(out.numel(), 1 << 17,
                   [&](int64_t begin, int64_t end) { replace_all(from + begin, end - begin, with, to + begin); });
    }
  });
}

}  // namespace tt::cpu
