// Operators that lay tensors beside each other: cat, stack, repeat.
#include "engine/rules/shape_rules.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/kernels.h"

namespace tt::cpu {

void cat(const Tensors& tensors, int64_t dim, Tensor& out) {
  dim = shape_rules::wrap_dim(dim, out.dim());
  Geometry place{out.sizes(), out.strides(), out->offset};
  for (const Tensor& t : tensors) {
    if (t.dim() != out.dim()) continue;  // [0], which cat takes for nothing of any shape
    place.sizes[dim] = t.size(dim);
    if (t.numel() > 0) copy(t, view_of(out, place));
    place.offset += t.size(dim) * out.stride(dim);
  }
}

void stack(const Tensors& tensors, int64_t dim, Tensor& out) {
  dim = shape_rules::wrap_dim(dim, out.dim());
  Geometry place{out.sizes(), out.strides(), out->offset};
  place.sizes.erase(place.sizes.begin() + dim);
  place.strides.erase(place.strides.begin() + dim);
  for (const Tensor& t : tensors) {
    if (t.numel() > 0) copy(t, view_of(out, place));
    place.offset += out.stride(dim);
  }
}

void repeat(const Tensor& input, absl::Span<const int64_t> repeats, Tensor& out) {
  if (out.numel() == 0) return;
  // Both with two dimensions for each: the copies, and what is copied.
  Geometry from{{}, {}, input->offset}, to{{}, {}, out->offset};
  const size_t lead = repeats.size() - input.sizes().size();
  for (size_t d = 0; d < repeats.size(); ++d) {
    const int64_t size = d < lead ? 1 : input.sizes()[d - lead];
    const int64_t stride = d < lead ? 0 : input.strides()[d - lead];
    from.sizes.insert(from.sizes.end(), {1, size});
    from.strides.insert(from.strides.end(), {0, stride});
    to.sizes.insert(to.sizes.end(), {repeats[d], size});
    to.strides.insert(to.strides.end(), {size * out.strides()[d], out.strides()[d]});
  }
  copy(view_of(input, from), view_of(out, to));
}

}  // namespace tt::cpu
