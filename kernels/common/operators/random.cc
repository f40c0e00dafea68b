// Random operators whose distribution a backend draws directly. Real and imaginary parts are drawn separately.
#include "kernels/common/iteration/complex_as_real.h"
#include "kernels/common/operators/backend.h"

namespace tt::TT_BACKEND {

void rand(absl::Span<const int64_t>, OptionalDType, OptionalDevice, Tensor& out) { draw_unit(as_real(out), 0, 1); }

void randn(absl::Span<const int64_t>, OptionalDType, OptionalDevice, Tensor& out) {
  draw_normal(as_real(out), 0, part_std(out.dtype(), 1));
}

void uniform_like(const Tensor&, double from, double to, Tensor& out) {
  const Tensor parts = as_real(out);
  check_uniform(from, to, parts.dtype());
  draw_unit(parts, from, to);
}

void normal_like(const Tensor&, double mean, double std, Tensor& out) {
  check_normal(std);
  draw_normal(as_real(out), mean, part_std(out.dtype(), std));
}

void randint_from(int64_t low, int64_t high, absl::Span<const int64_t>, OptionalDType, OptionalDevice, Tensor& out) {
  draw_integers(out, integers_between(low, high));
}

void random_like(const Tensor&, std::optional<int64_t> from, std::optional<int64_t> to, Tensor& out) {
  draw_integers(out, random_range(from, to, out.dtype()));
}

}  // namespace tt::TT_BACKEND
