// Complex tensors as views of their real and imaginary parts, for reductions that treat the parts separately.
#pragma once

#include <optional>

#include "absl/types/span.h"
#include "engine/schema/rules/shape_rules.h"
#include "engine/tensor/tensor.h"
#include "kernels/common/iteration/operands.h"

namespace tt {

// Metadata of the view of the real (which = 0) or imaginary (1) parts, with strides in real elements.
inline TensorMeta meta_of_part(const Tensor& t, int64_t which) {
  TensorMeta meta = t.meta();
  meta.dtype = to_real(t.dtype());
  for (int64_t& stride : meta.strides) stride *= 2;
  meta.offset = 2 * meta.offset + which;
  return meta;
}

// parts() views a complex tensor as real and imaginary parts, in a new last dimension of size 2. part() views only the
// real (which = 0) or imaginary (1) parts.
inline Tensor parts(const Tensor& t) {
  TensorMeta meta = meta_of_part(t, 0);
  meta.sizes.push_back(2);
  meta.strides.push_back(1);
  return alias(t, meta);
}
inline Tensor part(const Tensor& t, int which) { return alias(t, meta_of_part(t, which)); }
// Returns parts(t) if `t` is complex, else `t`.
inline Tensor as_real(const Tensor& t) { return is_complex(t.dtype()) ? parts(t) : t; }

// The dimensions of parts(t) that correspond to `dims` of `t`; absent or empty `dims` mean all dimensions of `t`.
// Requires t.dim() > 0.
inline Sizes dims_of_parts(const Tensor& t, const std::optional<absl::Span<const int64_t>>& dims) {
  Sizes result;
  if (!dims || dims->empty()) {
    for (int64_t d = 0; d < t.dim(); ++d) result.push_back(d);
  } else {
    for (int64_t d : *dims) result.push_back(shape_rules::wrap_dim(d, t.dim()));
  }
  return result;
}

// Calls reduce(parts of x, dimensions, parts of out), for a reduction that treats the parts of complex numbers
// separately.
template <typename F>
void reduce_parts(const Tensor& x, const std::optional<absl::Span<const int64_t>>& dims, const Tensor& out, F reduce) {
  const Tensor lined = at_least_1d(x);  // an empty list of dimensions would include that of the parts
  const Sizes of_parts = dims_of_parts(lined, dims);
  Tensor to = parts(out);
  reduce(parts(lined), SizesView(of_parts), to);
}

}  // namespace tt
