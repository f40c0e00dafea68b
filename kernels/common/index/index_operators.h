// Operators of advanced indexing, over a backend's kernels on a Selection.
#pragma once

#include "engine/schema/rules/shape_rules.h"
#include "engine/schema/scalar.h"
#include "kernels/common/index/selection.h"
#include "kernels/common/iteration/dims.h"

namespace tt::indexing {

// Outputs of pick() are contiguous and have the selection's sizes; those of the others are of any layout. Values have
// the output's dtype and broadcast to the selection.
struct IndexKernels {
  const SelectionKernels& selection;
  void (*copy)(const Tensor& src, const Tensor& dst);
  void (*fill_with)(const Tensor& dst, const Scalar& value);
  // out = the selected elements of x.
  void (*pick)(const Tensor& x, const Selection& selection, Tensor& out);
  // The selected elements of out = values.
  void (*replace)(const Tensor& out, const Selection& selection, const Tensor& values);
  // The selected elements of out += values, or += alpha * values. Elements that are selected repeatedly are added to
  // repeatedly.
  void (*accumulate)(const Tensor& out, const Selection& selection, const Tensor& values);
  void (*add_scaled)(const Tensor& out, const Selection& selection, const Tensor& values, const Scalar& alpha);
};

inline Selection select(const IndexKernels& kernels, const Tensor& x, const Tensors& indices) {
  return Selection(kernels.selection, x, indices, IndexRange::kEitherEnd);
}
inline Selection along(const IndexKernels& kernels, const Tensor& x, int64_t dim, const Tensor& index) {
  return Selection::along(kernels.selection, x, dim, index);
}

inline void index(const IndexKernels& kernels, const Tensor& input, const Tensors& indices, Tensor& out) {
  kernels.pick(input, select(kernels, input, indices), out);
}

// Allocates `out`: its size depends on the masks among the indices.
inline void index_masked(const IndexKernels& kernels, const Tensor& input, const Tensors& indices, Tensor& out) {
  const Selection selection = select(kernels, input, indices);
  out = empty(selection.sizes, input.dtype(), input.device());
  kernels.pick(input, selection, out);
}

inline void index_put(const IndexKernels& kernels, const Tensor& input, const Tensors& indices, const Tensor& values,
                      bool accumulate, Tensor& out) {
  const Selection selection = select(kernels, out, indices);
  Tensor converted = selection.fitting(values);
  if (converted.dtype() != out.dtype()) converted = kernels.selection.contiguous_as(converted, out.dtype());
  kernels.copy(input, out);
  (accumulate ? kernels.accumulate : kernels.replace)(out, selection, converted);
}

inline void index_select(const IndexKernels& kernels, const Tensor& input, int64_t dim, const Tensor& index,
                         Tensor& out) {
  const Tensor x = at_least_1d(input);
  kernels.pick(x, along(kernels, x, dim, index), out);
}

inline void index_add(const IndexKernels& kernels, const Tensor& input, int64_t dim, const Tensor& index,
                      const Tensor& source, const Scalar& alpha, Tensor& out) {
  kernels.copy(input, out);
  const Tensor target = at_least_1d(out);
  kernels.add_scaled(target, along(kernels, target, dim, index), at_least_1d(source), alpha);
}

inline void index_fill(const IndexKernels& kernels, const Tensor& input, int64_t dim, const Tensor& index,
                       const Scalar& value, Tensor& out) {
  kernels.copy(input, out);
  const Tensor target = at_least_1d(out), number = empty({}, out.dtype(), out.device());
  kernels.fill_with(number, value);
  kernels.replace(target, along(kernels, target, dim, index), number);
}

// Allocates `out`, which has one element per true element of the mask, broadcast with the input.
inline void masked_select(const IndexKernels& kernels, const Tensor& input, const Tensor& mask, Tensor& out) {
  const Sizes sizes = shape_rules::broadcast_sizes(input.sizes(), mask.sizes());
  const Sizes steps = broadcast_strides(input.sizes(), input.strides(), sizes);
  const Sizes mask_steps = broadcast_strides(mask.sizes(), mask.strides(), sizes);
  const Tensor whole_mask = view_of(mask, Geometry{sizes, mask_steps, mask->offset});
  const Selection selection(kernels.selection.offsets_of_true(whole_mask, steps));
  out = empty(selection.sizes, input.dtype(), input.device());
  kernels.pick(input, selection, out);
}

}  // namespace tt::indexing
