#include "autograd/formulas/formulas_index.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "engine/dispatch/ops.h"
#include "engine/schema/checked_math.h"
#include "engine/schema/rules/shape_rules.h"

namespace tt::autograd::formulas {
namespace {

Tensor zeros(SizesView sizes, const Tensor& like) { return ops::zeros(sizes, like.dtype(), like.device()); }

// Returns any defined gradient. At least one is defined; otherwise the node would not run.
const Tensor& any_defined(const Tensors& g) {
  return *std::find_if(g.begin(), g.end(), [](const Tensor& t) { return static_cast<bool>(t); });
}

}  // namespace

Tensor cat_gradients(const Tensors& g, SizesView sizes, SizesView pieces, int64_t dim) {
  int64_t d = shape_rules::wrap_dim(dim, static_cast<int64_t>(sizes.size()));
  Tensors gradients;
  for (size_t i = 0; i < g.size(); ++i) {
    Sizes piece(sizes.begin(), sizes.end());
    piece[static_cast<size_t>(d)] = pieces[i];
    gradients.push_back(g[i] ? g[i] : zeros(piece, any_defined(g)));
  }
  return ops::cat(gradients, d);
}

Tensor stack_gradients(const Tensors& g, SizesView sizes, int64_t dim) {
  int64_t d = shape_rules::wrap_dim(dim, static_cast<int64_t>(sizes.size()));
  Sizes piece(sizes.begin(), sizes.end());
  piece.erase(piece.begin() + d);
  Tensors gradients;
  for (const Tensor& t : g) gradients.push_back(t ? t : zeros(piece, any_defined(g)));
  return ops::stack(gradients, d);
}

Sizes split_sizes(SizesView sizes, int64_t split_size, int64_t dim) {
  return shape_rules::split_sizes(sizes, split_size, dim);
}
Sizes chunk_sizes(SizesView sizes, int64_t chunks, int64_t dim) { return shape_rules::chunk_sizes(sizes, chunks, dim); }
Sizes section_sizes(SizesView sizes, int64_t sections, int64_t dim) {
  return shape_rules::section_sizes(sizes, sections, dim);
}

Tensor unfold_grad(const Tensor& g, SizesView sizes, int64_t dimension, int64_t size, int64_t step) {
  if (sizes.empty()) return g.numel() == 0 ? zeros(sizes, g) : ops::reshape(g, {});
  int64_t d = shape_rules::wrap_dim(dimension, static_cast<int64_t>(sizes.size()));
  Tensor positions = ops::arange(sizes[static_cast<size_t>(d)], DType::kInt64, g.device());
  positions = ops::reshape(ops::unfold(positions, 0, size, step), {-1});
  const int64_t from[] = {-1}, to[] = {d + 1};
  Tensor windows = ops::flatten(ops::movedim(g, from, to), d, d + 1);
  return ops::index_add(zeros(sizes, g), d, positions, windows, Scalar(int64_t{1}));
}

Sizes negate(SizesView list) {
  Sizes result(list.begin(), list.end());
  for (int64_t& v : result) v = checked_sub(0, v);
  return result;
}

Tensor gather_padded(const Tensor& g, int64_t dim, const Tensor& index, SizesView sizes) {
  if (index.numel() == 0) return zeros(sizes, g);  // an empty index may have any number of dimensions
  Tensor result = ops::gather(g, dim, index, false);
  // Zero-dim tensors count as one entry, so that the dimensions of the index and of `sizes` may differ by one.
  if (result.sizes().size() != sizes.size()) result = ops::reshape(result, Sizes(sizes.size(), 1));
  for (size_t d = 0; d < sizes.size(); ++d) {
    int64_t missing = sizes[d] - result.sizes()[d];
    if (missing == 0) continue;
    Sizes rest = result.sizes();
    rest[d] = missing;
    result = ops::cat({result, zeros(rest, g)}, static_cast<int64_t>(d));
  }
  return result;
}

Tensor index_with_masks(const Tensor& g, const Tensors& indices) {
  bool masked = std::any_of(indices.begin(), indices.end(), [](const Tensor& t) {
    return t && (t.dtype() == DType::kBool || t.dtype() == DType::kUInt8);
  });
  return masked ? ops::index_masked(g, indices) : ops::index(g, indices);
}

Tensor masked_scatter_grad(const Tensor& g, SizesView sizes, const Tensor& mask) {
  Sizes expanded_sizes = shape_rules::broadcast_sizes(sizes, mask.sizes());
  Tensor expanded_grad = ops::index_put(zeros(expanded_sizes, g), {ops::expand(mask, expanded_sizes)}, g, false);
  return sum_to(expanded_grad, sizes);
}

Tensor scatter_into_zeros(const Tensor& g, SizesView sizes, const Tensor& indices, int64_t dim) {
  return ops::scatter(zeros(sizes, g), dim, indices, g);
}
Tensor scatter_add_into_zeros(const Tensor& g, SizesView sizes, const Tensor& indices, int64_t dim) {
  return ops::scatter_add(zeros(sizes, g), dim, indices, g);
}

Tensor grid_tap_weight_grad(const Tensor& g, const Tensor& grid, SizesView size, std::string_view mode,
                            std::string_view padding_mode, bool align_corners, SizesView order) {
  Tensors coordinates;  // x, the last dimension, first
  for (size_t d = size.size(); d-- > 0;) {
    Sizes next(order.begin(), order.end());
    ++next[d];
    const Tensor derivative = ops::grid_tap_weight(grid, size, mode, padding_mode, align_corners, next);
    coordinates.push_back(ops::sum(ops::mul(g, derivative), Sizes{1}));
  }
  return ops::reshape(ops::stack(coordinates, -1), grid.sizes());
}

Tensor grid_sample_input_grad(const Tensor& g, const Tensor& grid, SizesView input_sizes, std::string_view mode,
                              std::string_view padding_mode, bool align_corners) {
  const SizesView size = input_sizes.subspan(2);
  const Tensor index = ops::grid_tap_index(ops::detach(grid), size, mode, padding_mode, align_corners);
  const Tensor weight = ops::grid_tap_weight(grid, size, mode, padding_mode, align_corners, Sizes(size.size(), 0));
  const int64_t length = std::accumulate(size.begin(), size.end(), int64_t{1}, std::multiplies<>());
  return ops::reshape(ops::weighted_gather_input_grad(ops::flatten(g, 2, -1), index, weight, length), input_sizes);
}

Tensor grid_sample_grid_grad(const Tensor& g, const Tensor& input, const Tensor& grid, std::string_view mode,
                             std::string_view padding_mode, bool align_corners) {
  const SizesView size = absl::MakeConstSpan(input.sizes()).subspan(2);
  const Tensor index = ops::grid_tap_index(ops::detach(grid), size, mode, padding_mode, align_corners);
  const Tensor weight_grad =
      ops::weighted_gather_weight_grad(ops::flatten(g, 2, -1), ops::flatten(input, 2, -1), index);
  return grid_tap_weight_grad(weight_grad, grid, size, mode, padding_mode, align_corners, Sizes(size.size(), 0));
}

}  // namespace tt::autograd::formulas
