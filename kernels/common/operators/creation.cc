// Operators that create tensors filled with one number, and eye.
#include <algorithm>

#include "kernels/common/operators/backend.h"

namespace tt::TT_BACKEND {

void empty(absl::Span<const int64_t>, OptionalDType, OptionalDevice, Tensor&) {}

void empty_like(const Tensor&, OptionalDType, OptionalDevice, Tensor&) {}

void full(absl::Span<const int64_t>, Scalar fill_value, OptionalDType, OptionalDevice, Tensor& out) {
  fill_with(out, fill_value);
}

void full_like(const Tensor&, Scalar fill_value, OptionalDType, OptionalDevice, Tensor& out) {
  fill_with(out, fill_value);
}

void fill(const Tensor&, Scalar value, Tensor& out) { fill_with(out, value); }

void eye(int64_t, std::optional<int64_t>, OptionalDType, OptionalDevice, Tensor& out) {
  fill_with(out, int64_t{0});
  const int64_t diagonal = std::min(out.size(0), out.size(1));
  if (diagonal > 0) fill_with(view_of(out, {{diagonal}, {out.size(1) + 1}, out->offset, true}), int64_t{1});
}

}  // namespace tt::TT_BACKEND
