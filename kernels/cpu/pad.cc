// Constant padding: a filled tensor, and the part of the input that stays copied into it.
#include <algorithm>

#include "kernels/cpu/copy.h"
#include "kernels/cpu/kernels.h"

namespace tt::cpu {

void constant_pad(const Tensor& input, absl::Span<const int64_t> pad, Scalar value, Tensor& out) {
  fill_with(out, value);
  Geometry from{Sizes(input.sizes().begin(), input.sizes().end()),
                Sizes(input.strides().begin(), input.strides().end()), input->offset, true};
  Geometry to{from.sizes, Sizes(out.strides().begin(), out.strides().end()), out->offset, true};
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    const size_t d = from.sizes.size() - 1 - i;
    const int64_t before = pad[2 * i], after = pad[2 * i + 1];
    const int64_t kept = from.sizes[d] + std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0);
    from.offset += std::max<int64_t>(-before, 0) * from.strides[d];
    to.offset += std::max<int64_t>(before, 0) * to.strides[d];
    from.sizes[d] = to.sizes[d] = kept;
  }
  if (out.numel() > 0 && input.numel() > 0) copy(view_of(input, from), view_of(out, to));
}

}  // namespace tt::cpu
