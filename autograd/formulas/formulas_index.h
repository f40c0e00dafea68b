// Gradient functions for views, joining and indexing. Gradient formulas may also call operators and formulas.h.
#pragma once

#include <string_view>

#include "autograd/formulas/formulas.h"

namespace tt::autograd::formulas {

// Returns the gradient of a tensor of `sizes` that was split along `dim` into pieces of the sizes `pieces`. `g`
// contains the gradients of the pieces; an undefined entry counts as zeros.
Tensor cat_gradients(const Tensors& g, SizesView sizes, SizesView pieces, int64_t dim);
Tensor stack_gradients(const Tensors& g, SizesView sizes, int64_t dim);
Sizes split_sizes(SizesView sizes, int64_t split_size, int64_t dim);
Sizes chunk_sizes(SizesView sizes, int64_t chunks, int64_t dim);
Sizes section_sizes(SizesView sizes, int64_t sections, int64_t dim);
Tensor unfold_grad(const Tensor& g, SizesView sizes, int64_t dimension, int64_t size, int64_t step);
Sizes negate(SizesView list);

// Returns gather(g, dim, index), padded with zeros to `sizes`.
Tensor gather_padded(const Tensor& g, int64_t dim, const Tensor& index, SizesView sizes);
// Returns g[indices]. Entries of `indices` may be masks.
Tensor index_with_masks(const Tensor& g, const Tensors& indices);
Tensor masked_scatter_grad(const Tensor& g, SizesView sizes, const Tensor& mask);
// Return zeros of `sizes` with `g` written at the positions `indices` along `dim`. scatter_into_zeros requires unique
// positions; scatter_add_into_zeros adds the values of repeated positions.
Tensor scatter_into_zeros(const Tensor& g, SizesView sizes, const Tensor& indices, int64_t dim);
Tensor scatter_add_into_zeros(const Tensor& g, SizesView sizes, const Tensor& indices, int64_t dim);
// Returns the gradients of scatter_combine with respect to input and src. For "prod", the gradient of a factor contains
// the product of the other factors. For "amax" and "amin", equal extrema share the gradient evenly.
Tensors scatter_combine_grad(const Tensor& g, const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src,
                             std::string_view reduce, const Tensor& result);

// The gradient of grid_tap_weight's grid: for each coordinate, the sum over taps of g times the weights' derivative.
Tensor grid_tap_weight_grad(const Tensor& g, const Tensor& grid, SizesView size, std::string_view mode,
                            std::string_view padding_mode, bool align_corners, SizesView order);

// The gradients of grid_sample_values.
Tensor grid_sample_input_grad(const Tensor& g, const Tensor& grid, SizesView input_sizes, std::string_view mode,
                              std::string_view padding_mode, bool align_corners);
Tensor grid_sample_grid_grad(const Tensor& g, const Tensor& input, const Tensor& grid, std::string_view mode,
                             std::string_view padding_mode, bool align_corners);

}  // namespace tt::autograd::formulas
