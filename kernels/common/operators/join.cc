// Operators that are copies between views: cat, stack, repeat, roll, constant_pad, diag_embed and the pixel shuffles.
//
// They require contiguous outputs that alias no input (engine/dispatch/boxed.h), and shapes that have been checked.
#include <algorithm>

#include "engine/schema/rules/shape_rules.h"
#include "kernels/common/operators/backend.h"

namespace tt::TT_BACKEND {

void cat(const Tensors& tensors, int64_t dim, Tensor& out) {
  dim = shape_rules::wrap_dim(dim, out.dim());
  Geometry place{out.sizes(), out.strides(), out->offset};
  for (const Tensor& t : tensors) {
    if (t.dim() != out.dim()) continue;  // a tensor of sizes [0] may be joined with any shape
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
  // Each dimension of `out` is split into two: the repetitions, and the elements.
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

namespace {

// Copies input to out, rolled along dims[first] and the dimensions after it in `dims`. Each dimension is split in two:
// the part that is shifted up, and the part that wraps around to the start.
void roll_from(size_t first, absl::Span<const int64_t> shifts, absl::Span<const int64_t> dims, const Tensor& input,
               const Tensor& out) {
  if (first == dims.size()) return copy(input, out);
  const int64_t d = shape_rules::wrap_dim(dims[first], input.dim()), size = input.size(d);
  const int64_t shift = (shifts[first] % size + size) % size;
  auto part = [d](const Tensor& t, int64_t start, int64_t length) {
    Geometry geometry{t.sizes(), t.strides(), t->offset + start * t.stride(d)};
    geometry.sizes[d] = length;
    return view_of(t, geometry);
  };
  roll_from(first + 1, shifts, dims, part(input, 0, size - shift), part(out, shift, size - shift));
  if (shift == 0) return;
  roll_from(first + 1, shifts, dims, part(input, size - shift, shift), part(out, 0, shift));
}

}  // namespace

void roll(const Tensor& input, absl::Span<const int64_t> shifts, absl::Span<const int64_t> dims, Tensor& out) {
  if (input.numel() == 0) return;
  if (!dims.empty() && input.dim() > 0) {
    absl::InlinedVector<int64_t, 6> sums(static_cast<size_t>(input.dim())), order;  // a dimension may be named twice
    for (size_t i = 0; i < dims.size(); ++i) {
      const int64_t d = shape_rules::wrap_dim(dims[i], input.dim()), size = input.size(d);
      int64_t& sum = sums[static_cast<size_t>(d)];
      sum = (sum + shifts[i] % size) % size;
    }
    for (int64_t d = 0; d < input.dim(); ++d) order.push_back(d);
    return roll_from(0, sums, order, input, out);
  }
  // Rolls the flattened tensor.
  Tensor flat = input;
  if (!input.is_contiguous()) copy(input, flat = tt::empty(input.sizes(), input.dtype(), input.device()));
  const int64_t along = 0;
  auto as_line = [](const Tensor& t) { return view_of(t, Geometry{{t.numel()}, {1}, t->offset}); };
  roll_from(0, shifts.first(1), {&along, 1}, as_line(flat), as_line(out));
}

// Fills out with `value`, and copies the input into its middle. `pad` holds the number of elements added (or, if
// negative, removed) before and after each dimension, the last dimension first.
void constant_pad(const Tensor& input, absl::Span<const int64_t> pad, Scalar value, Tensor& out) {
  fill_with(out, value);
  if (out.numel() == 0 || input.numel() == 0) return;
  Geometry from{input.sizes(), input.strides(), input->offset, true},
      to{input.sizes(), out.strides(), out->offset, true};
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    const size_t d = from.sizes.size() - 1 - i;
    const int64_t before = pad[2 * i], after = pad[2 * i + 1];
    const int64_t kept = from.sizes[d] + std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0);
    from.offset += std::max<int64_t>(-before, 0) * from.strides[d];
    to.offset += std::max<int64_t>(before, 0) * to.strides[d];
    from.sizes[d] = to.sizes[d] = kept;
  }
  copy(view_of(input, from), view_of(out, to));
}

namespace {

// The view of `out` that diag_embed copies its input to; other elements are 0.
Tensor diagonals_of(const Tensor& out, int64_t length, int64_t offset, int64_t dim1, int64_t dim2) {
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

}  // namespace

void diag_embed(const Tensor& input, int64_t offset, int64_t dim1, int64_t dim2, Tensor& out) {
  fill_with(out, Scalar(false));
  if (input.numel() > 0) copy(input, diagonals_of(out, input.size(-1), offset, dim1, dim2));
}

namespace {

// Pixels of images, (*, C, r, r, H, W): of images of C channels and H r x W r pixels, or of C r^2 channels and H x W
// pixels.
Tensor pixels_of_size(const Tensor& large, int64_t r) {
  const size_t n = large.sizes().size();
  Geometry g{large.sizes(), large.strides(), large->offset};
  const int64_t h = g.sizes[n - 2] / r, w = g.sizes[n - 1] / r, down = g.strides[n - 2], right = g.strides[n - 1];
  g.sizes.resize(n - 2);
  g.strides.resize(n - 2);
  g.sizes.insert(g.sizes.end(), {r, r, h, w});
  g.strides.insert(g.strides.end(), {down, right, down * r, right * r});
  return view_of(large, g);
}
Tensor pixels_of_channels(const Tensor& deep, int64_t r) {
  const size_t n = deep.sizes().size();
  Geometry g{deep.sizes(), deep.strides(), deep->offset};
  const int64_t step = g.strides[n - 3];
  g.sizes[n - 3] /= r * r;
  g.strides[n - 3] = step * r * r;
  g.sizes.insert(g.sizes.end() - 2, {r, r});
  g.strides.insert(g.strides.end() - 2, {step * r, step});
  return view_of(deep, g);
}

}  // namespace

void pixel_shuffle(const Tensor& input, int64_t upscale_factor, Tensor& out) {
  if (out.numel() > 0) copy(pixels_of_channels(input, upscale_factor), pixels_of_size(out, upscale_factor));
}

void pixel_unshuffle(const Tensor& input, int64_t downscale_factor, Tensor& out) {
  if (out.numel() > 0) copy(pixels_of_size(input, downscale_factor), pixels_of_channels(out, downscale_factor));
}

}  // namespace tt::TT_BACKEND
