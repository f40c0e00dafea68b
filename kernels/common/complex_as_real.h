// Complex tensors as views of their real and imaginary parts, for reductions that treat the parts separately.
#pragma once

#include <optional>

#include "absl/types/span.h"
#include "engine/schema/rules/shape_rules.h"
#include "engine/tensor/tensor.h"
#include "kernels/common/index_values.h"

namespace tt {

// View of the real (0) or imaginary (1) parts; strides and offset count real elements.
inline TensorMeta meta_of_part(const Tensor& t, int64_t which) {
  TensorMeta meta = t.meta();
  meta.dtype = to_real(t.dtype());
  for (int64_t& stride : meta.strides) stride *= 2;
  meta.offset = 2 * meta.offset + which;
  return meta;
}

// parts(): view with a trailing dimension of size 2 for the real and imaginary part. part(): view of the real (0) or
// imaginary (1) parts. Both require a complex tensor.
inline Tensor parts(const Tensor& t) {
  TensorMeta meta = meta_of_part(t, 0);
  meta.sizes.push_back(2);
  meta.strides.push_back(1);
  return alias(t, meta);
}
inline Tensor part(const Tensor& t, int which) { return alias(t, meta_of_part(t, which)); }

// The dimensions of parts(t) that `dims` of `t` denotes; no dims means all of t's. Requires t.dim() > 0.
inline Sizes dims_of_parts(const Tensor& t, const std::optional<absl::Span<const int64_t>>& dims) {
  Sizes result;
  if (!dims || dims->empty()) {
    for (int64_t d = 0; d < t.dim(); ++d) result.push_back(d);
  } else {
    for (int64_t d : *dims) result.push_back(shape_rules::wrap_dim(d, t.dim()));
  }
  return result;
}

// Reduces real and imaginary parts separately: calls reduce(parts(x), dimensions, parts(out)).
template <typename F>
void reduce_parts(const Tensor& x, const std::optional<absl::Span<const int64_t>>& dims, const Tensor& out, F reduce) {
  const Tensor lined = at_least_1d(x);  // for a zero-dim x the list of dims would be empty, which means all
  const Sizes of_parts = dims_of_parts(lined, dims);
  Tensor to = parts(out);
  reduce(parts(lined), SizesView(of_parts), to);
}

}  // namespace tt
