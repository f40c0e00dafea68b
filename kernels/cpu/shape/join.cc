// cat, stack, repeat and constant_pad.
#include "kernels/common/shape/join.h"

#include "kernels/cpu/iteration/copy.h"
#include "kernels/cpu/kernels.h"

namespace tt::cpu {

void cat(const Tensors& tensors, int64_t dim, Tensor& out) { join::cat(&copy, tensors, dim, out); }

void stack(const Tensors& tensors, int64_t dim, Tensor& out) { join::stack(&copy, tensors, dim, out); }

void repeat(const Tensor& input, absl::Span<const int64_t> repeats, Tensor& out) {
  join::repeat(&copy, input, repeats, out);
}

void constant_pad(const Tensor& input, absl::Span<const int64_t> pad, Scalar value, Tensor& out) {
  join::constant_pad(&copy, &fill_with, input, pad, value, out);
}

}  // namespace tt::cpu
