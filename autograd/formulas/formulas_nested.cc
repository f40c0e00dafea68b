#include "autograd/formulas/formulas_nested.h"

#include "engine/dispatch/ops.h"

namespace tt::autograd::formulas {

Tensor jagged_to_padded_grad(const Tensor& g, const Tensor& offsets, const Tensor& lengths, SizesView values_sizes) {
  return ops::padded_to_jagged(g, offsets, lengths, values_sizes[0]);
}

Tensor padded_to_jagged_grad(const Tensor& g, const Tensor& offsets, const Tensor& lengths, SizesView padded_sizes) {
  return ops::jagged_to_padded(g, offsets, lengths, padded_sizes[1], Scalar(0));
}

Tensor jagged_reduce_grad(const Tensor& g, const Tensor& values, const Tensor& offsets, const Tensor& lengths,
                          std::string_view reduce, const Tensor& result) {
  const auto expand = [&](const Tensor& rows) { return ops::jagged_expand(rows, offsets, lengths, values.size(0)); };
  if (reduce == "sum") return expand(g);
  // Zeros between the sequences may equal an entry there: its share is of a zero gradient.
  Tensor is_extremum = ops::logical_or(ops::eq(values, expand(result)), ops::isnan(values));
  const Tensor count = ops::jagged_reduce(ops::to_dtype(is_extremum, g.dtype()), offsets, lengths, "sum");
  return ops::where(is_extremum, expand(ops::true_divide(g, ops::clamp_min(count, 1))), 0.0);
}

}  // namespace tt::autograd::formulas
