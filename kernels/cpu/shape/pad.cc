// Constant padding: a filled tensor, and the part of the input that stays copied into it.
#include "kernels/common/shape/padding.h"
#include "kernels/cpu/iteration/copy.h"
#include "kernels/cpu/kernels.h"

namespace tt::cpu {

void constant_pad(const Tensor& input, absl::Span<const int64_t> pad, Scalar value, Tensor& out) {
  fill_with(out, value);
  if (out.numel() == 0 || input.numel() == 0) return;
  const Padding padding(input, pad, out);
  copy(view_of(input, padding.from), view_of(out, padding.to));
}

}  // namespace tt::cpu
