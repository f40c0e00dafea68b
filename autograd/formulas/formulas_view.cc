// Gradient formulas of views, joining and indexing.

#include "autograd/formulas/formulas.h"
#include "autograd/formulas/region.h"
#include "engine/dispatch/ops.h"
#include "engine/schema/op_ids.h"
#include "engine/schema/rules/shape_rules.h"

namespace tt::autograd::formulas {
namespace {

using shape_rules::wrap_dim;

// Returns zeros of `sizes` with `g` at the elements that `view` selects.
template <typename View>
Tensor embed(const Tensor& g, SizesView sizes, View view) {
  Tensor full = ops::zeros(sizes, g.dtype(), g.device());
  write(view(full), g);
  return full;
}

}  // namespace

Tensor select_grad(const Tensor& g, SizesView sizes, int64_t dim, int64_t index) {
  return embed(g, sizes, [&](const Tensor& full) { return ops::select(full, dim, index); });
}

Tensor slice_grad(const Tensor& g, SizesView sizes, int64_t dim, std::optional<int64_t> start,
                  std::optional<int64_t> end, int64_t step) {
  return embed(g, sizes, [&](const Tensor& full) { return ops::slice(full, dim, start, end, step); });
}

Tensor narrow_grad(const Tensor& g, SizesView sizes, int64_t dim, int64_t start) {
  return embed(g, sizes, [&](const Tensor& full) { return ops::narrow(full, dim, start, g.size(dim)); });
}

Tensor diagonal_grad(const Tensor& g, SizesView sizes, int64_t offset, int64_t dim1, int64_t dim2) {
  return embed(g, sizes, [&](const Tensor& full) { return ops::diagonal(full, offset, dim1, dim2); });
}

Tensor as_strided_grad(const Tensor& g, const Tensor& input, SizesView size, SizesView stride,
                       std::optional<int64_t> offset) {
  Geometry view{Sizes(size.begin(), size.end()), Sizes(stride.begin(), stride.end()), offset.value_or(input->offset),
                true};
  Geometry base{input.sizes(), input.strides(), input->offset, true};
  return Region{base, view, g.dtype(), g.dtype(), g.device()}.scatter(g);
}

Sizes inverse_permutation(SizesView dims) {
  Sizes inverse(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) {
    inverse[wrap_dim(dims[i], static_cast<int64_t>(dims.size()))] = static_cast<int64_t>(i);
  }
  return inverse;
}

// Splits each dimension of g into the repetitions and the original dimension, and sums over the repetitions.
Tensor repeat_grad(const Tensor& g, SizesView sizes, SizesView repeats) {
  size_t extra_dims = repeats.size() - sizes.size();
  Sizes split, dims;
  for (size_t d = 0; d < repeats.size(); ++d) {
    dims.push_back(static_cast<int64_t>(split.size()));
    split.push_back(repeats[d]);
    if (d >= extra_dims) split.push_back(sizes[d - extra_dims]);
  }
  if (dims.empty()) return g;
  return ops::reshape(ops::sum(ops::reshape(g, split), dims, false), sizes);
}

Tensors cat_grad(const Tensor& g, const std::vector<Sizes>& shapes, int64_t dim) {
  Tensors parts;
  int64_t at = 0;
  for (const Sizes& sizes : shapes) {
    if (sizes.size() == 1 && sizes[0] == 0 && g.dim() != 1) {  // cat ignores such inputs, whatever their shape
      parts.push_back(ops::zeros(sizes, g.dtype(), g.device()));
      continue;
    }
    int64_t length = sizes[wrap_dim(dim, g.dim())];
    parts.push_back(ops::narrow(g, dim, at, length));
    at += length;
  }
  return parts;
}

Tensors stack_grad(const Tensor& g, int64_t dim) { return ops::unbind(g, dim); }

Tensor index_select_grad(const Tensor& g, SizesView sizes, int64_t dim, const Tensor& index) {
  Tensor zeros = ops::zeros(sizes, g.dtype(), g.device());
  if (sizes.empty()) return ops::add(zeros, ops::reshape(g, sizes));
  return ops::index_add(zeros, dim, index, g);
}

Tensor gather_grad(const Tensor& g, SizesView sizes, int64_t dim, const Tensor& index) {
  return ops::scatter_add(ops::zeros(sizes, g.dtype(), g.device()), dim, index, g);
}

Tensor index_grad(const Tensor& g, SizesView sizes, const Tensors& indices) {
  return ops::index_put(ops::zeros(sizes, g.dtype(), g.device()), indices, g, true);
}

}  // namespace tt::autograd::formulas
