// Operators that consist of copies between views: cat, stack, repeat, roll, diag_embed. Each takes the backend's
// copy().
//
// Outputs are plain (engine/dispatch/boxed.h); shapes have been checked.
#pragma once

#include "engine/schema/rules/shape_rules.h"
#include "engine/tensor/tensor.h"

namespace tt::join {

using Copy = void (*)(const Tensor& src, const Tensor& dst);

inline void cat(Copy copy, const Tensors& tensors, int64_t dim, Tensor& out) {
  dim = shape_rules::wrap_dim(dim, out.dim());
  Geometry place{out.sizes(), out.strides(), out->offset};
  for (const Tensor& t : tensors) {
    if (t.dim() != out.dim()) continue;  // cat accepts a tensor of shape [0] next to any shape
    place.sizes[dim] = t.size(dim);
    if (t.numel() > 0) copy(t, view_of(out, place));
    place.offset += t.size(dim) * out.stride(dim);
  }
}

inline void stack(Copy copy, const Tensors& tensors, int64_t dim, Tensor& out) {
  dim = shape_rules::wrap_dim(dim, out.dim());
  Geometry place{out.sizes(), out.strides(), out->offset};
  place.sizes.erase(place.sizes.begin() + dim);
  place.strides.erase(place.strides.begin() + dim);
  for (const Tensor& t : tensors) {
    if (t.numel() > 0) copy(t, view_of(out, place));
    place.offset += out.stride(dim);
  }
}

inline void repeat(Copy copy, const Tensor& input, absl::Span<const int64_t> repeats, Tensor& out) {
  if (out.numel() == 0) return;
  // Each view has two dimensions per dimension of the result: the repetitions, and the repeated elements.
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

// Copies input to out, rolled along dims[first] and all later ones. Each dimension splits into a part that moves up
// and a part that wraps around to the start.
inline void roll_from(Copy copy, size_t first, absl::Span<const int64_t> shifts, absl::Span<const int64_t> dims,
                      const Tensor& input, const Tensor& out) {
  if (first == dims.size()) return copy(input, out);
  const int64_t d = shape_rules::wrap_dim(dims[first], input.dim()), size = input.size(d);
  const int64_t shift = (shifts[first] % size + size) % size;
  auto part = [d](const Tensor& t, int64_t start, int64_t length) {
    Geometry geometry{t.sizes(), t.strides(), t->offset + start * t.stride(d)};
    geometry.sizes[d] = length;
    return view_of(t, geometry);
  };
  roll_from(copy, first + 1, shifts, dims, part(input, 0, size - shift), part(out, shift, size - shift));
  if (shift == 0) return;
  roll_from(copy, first + 1, shifts, dims, part(input, size - shift, shift), part(out, 0, shift));
}

inline void roll(Copy copy, const Tensor& input, absl::Span<const int64_t> shifts, absl::Span<const int64_t> dims,
                 Tensor& out) {
  if (input.numel() == 0) return;
  if (!dims.empty() && input.dim() > 0) return roll_from(copy, 0, shifts, dims, input, out);
  // Without dims, roll works on the flattened tensor; a non-contiguous input is copied first.
  Tensor flat = input;
  if (!input.is_contiguous()) copy(input, flat = empty(input.sizes(), input.dtype(), input.device()));
  const int64_t along = 0;
  auto as_line = [](const Tensor& t) { return view_of(t, Geometry{{t.numel()}, {1}, t->offset}); };
  roll_from(copy, 0, shifts.first(1), {&along, 1}, as_line(flat), as_line(out));
}

// The diagonal of `out` that diag_embed copies its input to; all other elements are 0.
inline Tensor diagonals_of(const Tensor& out, int64_t length, int64_t offset, int64_t dim1, int64_t dim2) {
  dim1 = shape_rules::wrap_dim(dim1, out.dim());
  dim2 = shape_rules::wrap_dim(dim2, out.dim());
  Geometry diagonal{{}, {}, out->offset + (offset > 0 ? offset * out.stride(dim2) : -offset * out.stride(dim1))};
  for (int64_t d = 0; d < out.dim(); ++d) {
    if (d == dim1 || d == dim2) continue;
    diagonal.sizes.push_back(out.size(d));
    diagonal.strides.push_back(out.stride(d));
  }
  diagonal.sizes.push_back(length);
  diagonal.strides.push_back(out.stride(dim1) + out.stride(dim2));
  return view_of(out, diagonal);
}

// The strides and start offset with which flip() reads its input.
struct FlippedView {
  Sizes strides;
  int64_t start = 0;  // in elements, from the first element

  FlippedView(const Tensor& input, absl::Span<const int64_t> dims) : strides(input.strides()) {
    for (int64_t dim : dims) {
      if (input.dim() == 0) break;
      const int64_t d = shape_rules::wrap_dim(dim, input.dim());
      start += (input.size(d) - 1) * input.stride(d);
      strides[d] = -strides[d];
    }
  }
};

// The column in which row i of a matrix crosses the diagonal. Saturates: a client may pass a `diagonal` for which the
// sum overflows.
constexpr int64_t diagonal_column(int64_t i, int64_t diagonal) {
  constexpr int64_t kLast = INT64_MAX - 1;
  if (diagonal > kLast - i) return kLast;  // i is never negative
  return i + diagonal;
}

}  // namespace tt::join
