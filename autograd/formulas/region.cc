#include "autograd/formulas/region.h"

#include <algorithm>

#include "engine/dispatch/ops.h"
#include "engine/schema/op_ids.h"

namespace tt::autograd {
namespace {

bool is_dense(const Geometry& g) { return SizesView(g.strides) == SizesView(contiguous_strides(g.sizes)); }

// Returns the storage index after the last element of `g`, or the offset of `g` if it is empty.
int64_t end_of(const Geometry& g) {
  int64_t last = g.offset;
  for (size_t d = 0; d < g.sizes.size(); ++d) {
    if (g.sizes[d] == 0) return g.offset;
    last += (g.sizes[d] - 1) * g.strides[d];
  }
  return last + 1;
}

// Returns false only if each stride, in ascending order, exceeds the distance that the smaller strides cover. May
// therefore return true for a layout without overlap.
bool overlaps_itself(const Geometry& g) {
  absl::InlinedVector<std::pair<int64_t, int64_t>, 5> steps;  // stride, size
  for (size_t d = 0; d < g.sizes.size(); ++d) {
    if (g.sizes[d] > 1) steps.emplace_back(g.strides[d], g.sizes[d]);
  }
  std::sort(steps.begin(), steps.end());
  int64_t covered = 0;
  for (auto [stride, size] : steps) {
    if (stride <= covered) return true;
    covered += stride * (size - 1);
  }
  return false;
}

// The storage range that contains base and view, in elements.
struct Row {
  int64_t first;
  int64_t length;
};
Row row_of(const Region& r) {
  int64_t first = std::min(r.base.offset, r.view.offset);
  return {first, std::max(end_of(r.base), end_of(r.view)) - first};
}

// Returns the view of `row` with layout `g`. `first` is the storage index of the first element of `row`.
Tensor strided_view(const Tensor& row, int64_t first, const Geometry& g) {
  return ops::as_strided(row, g.sizes, g.strides, row->offset + g.offset - first);
}

// Returns a one-dimensional tensor over the storage range of base and view, with the elements of `whole`, a tensor
// shaped like the base, at the positions of the base's elements.
Tensor row_from(const Region& r, const Tensor& whole) {
  Row row = row_of(r);
  if (is_dense(r.base) && row.first == r.base.offset && row.length == whole.numel()) {
    return ops::contiguous(ops::reshape(whole, Sizes{row.length}));  // expanded gradients are copied
  }
  Tensor elements = ops::zeros(Sizes{row.length}, r.dtype, r.device);
  write(strided_view(elements, row.first, r.base), whole);
  return elements;
}

// Returns a one-dimensional tensor over the row: the sums of the parts at the positions of the elements of `g`.
Tensor sum_into_row(const Row& row, const Geometry& g, const Tensor& part) {
  const Tensor positions = ops::arange_from(int64_t{0}, row.length, int64_t{1}, DType::kInt64, part.device());
  const Sizes flat{part.numel()};
  const DType t = part.dtype(), wide = is_reduced_floating(t) ? DType::kFloat32 : t;  // sums are rounded once
  const Tensor parts = ops::reshape(wide == t ? part : ops::to_dtype(part, wide), flat);
  const Tensor sums = ops::index_add(ops::zeros(Sizes{row.length}, wide, part.device()), 0,
                                     ops::reshape(strided_view(positions, row.first, g), flat), parts);
  return wide == t ? sums : ops::to_dtype(sums, t);
}

Geometry parts_of(const Geometry& complex) {
  Geometry parts = complex;
  for (int64_t& stride : parts.strides) stride *= 2;
  parts.sizes.push_back(2);
  parts.strides.push_back(1);
  parts.offset *= 2;
  return parts;
}

// A tensor of a dtype as its parts, and the reverse, if the dtype is complex.
Tensor to_parts(const Tensor& t) { return is_complex(t.dtype()) ? ops::view_as_real(t) : t; }
Tensor from_parts(const Tensor& parts, DType dtype) {
  return is_complex(dtype) ? ops::view_as_complex(ops::contiguous(parts)) : parts;
}

}  // namespace

void write(const Tensor& target, const Tensor& source) {
  const Arg args[] = {Arg(target.get()), Arg(source.get())};
  ops::call(op_id::kAssign, args, absl::Span<const Tensor>(&target, 1));
}

Region Region::of_parts() const {
  const DType part = to_real(dtype);
  return {is_complex(dtype) ? parts_of(base) : base, is_complex(view_dtype) ? parts_of(view) : view, part, part,
          device};
}

Tensor Region::gather(const Tensor& whole) const {
  if (dtype != view_dtype) return from_parts(of_parts().gather(to_parts(whole)), view_dtype);
  return strided_view(row_from(*this, whole), row_of(*this).first, view);
}

Tensor Region::scatter(const Tensor& part) const {
  if (dtype != view_dtype) return from_parts(of_parts().scatter(to_parts(part)), dtype);
  Row row = row_of(*this);
  Tensor elements;
  if (overlaps_itself(view)) {
    elements = sum_into_row(row, view, part);
  } else {
    elements = ops::zeros(Sizes{row.length}, dtype, device);
    write(strided_view(elements, row.first, view), part);
  }
  if (overlaps_itself(base)) {  // elements of the base at one place share the place's gradient
    const Tensor places = sum_into_row(row, base, ops::ones(base.sizes, to_real(dtype), device));
    elements = ops::div(elements, ops::clamp_min(places, 1.0));
  }
  bool as_is = is_dense(base) && row.first == base.offset && row.length == end_of(base) - base.offset;
  return as_is ? ops::reshape(elements, base.sizes) : strided_view(elements, row.first, base);
}

Tensor Region::zero_out(const Tensor& whole) const {
  if (dtype != view_dtype) return from_parts(of_parts().zero_out(to_parts(whole)), dtype);
  Row row = row_of(*this);
  Tensor keeps = ops::ones(Sizes{row.length}, DType::kBool, device);
  write(strided_view(keeps, row.first, view), ops::zeros(view.sizes, DType::kBool, device));
  return ops::where(strided_view(keeps, row.first, base), whole, 0.0);  // inf times 0 is nan
}

}  // namespace tt::autograd
