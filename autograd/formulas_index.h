// What the gradients of views, joining and indexing call beside operators and formulas.h.
#pragma once

#include <string_view>

#include "autograd/formulas.h"

namespace tt::autograd::formulas {

// `g` holds the gradients of pieces along `dim`, of the given sizes; undefined ones are zeros.
Tensor cat_gradients(const Tensors& g, SizesView sizes, SizesView pieces, int64_t dim);
Tensor stack_gradients(const Tensors& g, SizesView sizes, int64_t dim);
Sizes split_sizes(SizesView sizes, int64_t split_size, int64_t dim);
Sizes chunk_sizes(SizesView sizes, int64_t chunks, int64_t dim);
Sizes section_sizes(SizesView sizes, int64_t sections, int64_t dim);
Tensor unfold_grad(const Tensor& g, SizesView sizes, int64_t dimension, int64_t size, int64_t step);
Sizes negated(SizesView list);

// gather(g, dim, index), with zeros around it where `sizes` are larger than index's.
Tensor gather_to(const Tensor& g, int64_t dim, const Tensor& index, SizesView sizes);
// g[indices], masks or not.
Tensor index_any(const Tensor& g, const Tensors& indices);
Tensor masked_scatter_grad(const Tensor& g, SizesView sizes, const Tensor& mask);
// Zeros of `sizes`, with g at the places that indices name along dim: each named once, or (the
// second) collecting.
Tensor chosen_places(const Tensor& g, SizesView sizes, const Tensor& indices, int64_t dim);
Tensor collected_places(const Tensor& g, SizesView sizes, const Tensor& indices, int64_t dim);
// scatter_combine's, in input and src: a product's other factors; shared evenly by what is the extremum.
Tensors scatter_combine_grad(const Tensor& g, const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src,
                             std::string_view reduce, const Tensor& result);

}  // namespace tt::autograd::formulas
