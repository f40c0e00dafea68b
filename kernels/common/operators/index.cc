// Advanced indexing, index_select, index_add, index_fill, masked_select and one_hot.
#include "engine/schema/rules/shape_rules.h"
#include "kernels/common/iteration/accumulate_type.h"
#include "kernels/common/iteration/dims.h"
#include "kernels/common/operators/backend.h"

namespace tt::TT_BACKEND {
namespace {

Selection select(const Tensor& x, const Tensors& indices) {
  return Selection(kSelectionKernels, x, indices, IndexRange::kEitherEnd);
}
Selection select_in_dim(const Tensor& x, int64_t dim, const Tensor& index, IndexRange range = IndexRange::kFromZero) {
  return Selection::in_dim(kSelectionKernels, x, dim, index, range);
}

// Whether `count` elements are added in a wider tensor of the output's size, which is rounded once. A few elements are
// added in place, each sum rounded: the whole tensor would have to be read and written.
bool is_summed_apart(const Tensor& input, int64_t count, const Tensor& out) {
  constexpr int64_t kFew = 8;
  const bool writes_all = input.data() != out.data() || count >= out.numel() / kFew;
  return writes_all && accumulate_type(out.dtype()) != out.dtype();
}

}  // namespace

void index(const Tensor& input, const Tensors& indices, Tensor& out) {
  copy_selected(input, select(input, indices), out);
}

// Allocates `out`: its size depends on the masks among the indices.
void index_masked(const Tensor& input, const Tensors& indices, Tensor& out) {
  const Selection selection = select(input, indices);
  out = tt::empty(selection.sizes, input.dtype(), input.device());
  copy_selected(input, selection, out);
}

void index_put(const Tensor& input, const Tensors& indices, const Tensor& values, bool accumulate, Tensor& out) {
  const Selection selection = select(out, indices);
  if (accumulate && is_summed_apart(input, selection.numel(), out)) {
    Tensor sums = tt::empty(out.sizes(), accumulate_type(out.dtype()), out.device());
    index_put(input, indices, values, accumulate, sums);
    return copy(sums, out);
  }
  selection.check_values(values);
  const Tensor converted =
      values.dtype() == out.dtype() ? values : kSelectionKernels.contiguous_as(values, out.dtype());
  copy(input, out);
  accumulate ? accumulate_selected(out, selection, converted) : replace_selected(out, selection, converted);
}

void index_select(const Tensor& input, int64_t dim, const Tensor& index, Tensor& out) {
  const Tensor x = at_least_1d(input);
  copy_selected(x, select_in_dim(x, dim, index), out);
}

void index_add(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& source, Scalar alpha, Tensor& out) {
  if (is_summed_apart(input, source.numel(), out)) {
    Tensor sums = tt::empty(out.sizes(), accumulate_type(out.dtype()), out.device());
    index_add(input, dim, index, kSelectionKernels.contiguous_as(source, sums.dtype()), alpha, sums);
    return copy(sums, out);
  }
  const Tensor target = at_least_1d(out);
  const Selection selection = select_in_dim(target, dim, index);  // checked before anything is written
  copy(input, out);
  add_selected(target, selection, at_least_1d(source), alpha);
}

void index_fill(const Tensor& input, int64_t dim, const Tensor& index, Scalar value, Tensor& out) {
  const Tensor target = at_least_1d(out), number = tt::empty({}, out.dtype(), out.device());
  const Selection selection = select_in_dim(target, dim, index, IndexRange::kEitherEnd);
  fill_with(number, value);
  copy(input, out);
  replace_selected(target, selection, number);
}

// Allocates `out`, which has one element per true element of the mask, broadcast with the input.
void masked_select(const Tensor& input, const Tensor& mask, Tensor& out) {
  const Sizes sizes = shape_rules::broadcast_sizes(input.sizes(), mask.sizes());
  const Sizes steps = broadcast_strides(input.sizes(), input.strides(), sizes);
  const Sizes mask_steps = broadcast_strides(mask.sizes(), mask.strides(), sizes);
  const Tensor whole_mask = view_of(mask, Geometry{sizes, mask_steps, mask->offset});
  const Selection selection(kSelectionKernels.offsets_of_true(whole_mask, steps));
  out = tt::empty(selection.sizes, input.dtype(), input.device());
  copy_selected(input, selection, out);
}

void one_hot(const Tensor& input, int64_t, Tensor& out) {
  fill_with(out, Scalar(int64_t{0}));
  if (out.numel() == 0) return;
  Geometry column{input.sizes(), input.strides(), input->offset};
  column.sizes.push_back(1);
  column.strides.push_back(1);
  scatter_value(out, -1, view_of(input, column), Scalar(int64_t{1}), out);
}

}  // namespace tt::TT_BACKEND
