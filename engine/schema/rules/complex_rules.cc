// Rules for viewing complex tensors as real ones, and real tensors as complex ones.

#include "engine/schema/checked_math.h"
#include "engine/schema/error.h"
#include "engine/schema/rules/shape_rules.h"

namespace tt::shape_rules {
namespace {

// The real (0) or imaginary (1) parts, as a view of reals.
Geometry parts(const TensorMeta& t, int64_t which) {
  Geometry geometry{t.sizes, t.strides, 2 * t.offset + which, true};
  for (SymInt& stride : geometry.strides) stride = scaled_stride(stride, 2);
  return geometry;
}

}  // namespace

Geometry view_as_real(const Arg& input) {
  check(ErrorKind::kType, is_complex(input.tensor->dtype), "view_as_real is only supported for complex tensors");
  Geometry geometry = parts(*input.tensor, 0);
  geometry.sizes.push_back(2);
  geometry.strides.push_back(1);
  return geometry;
}

Geometry view_as_complex(const Arg& input) {
  const TensorMeta& t = *input.tensor;
  check(t.dim() > 0, "Input tensor must have one or more dimensions");
  check(t.sizes.back() == 2, "Tensor must have a last dimension of size 2, got sizes ", t.sizes);
  check(t.strides.back() == 1, "Tensor must have a last dimension with stride 1, got strides ", t.strides);
  check(t.offset % 2 == 0, "Tensor must have a storage_offset divisible by 2, got ", t.offset);
  Geometry geometry{t.sizes, t.strides, t.offset / 2, true};
  geometry.sizes.pop_back();
  geometry.strides.pop_back();
  for (SymInt& stride : geometry.strides) {
    check(stride % 2 == 0, "Tensor must have a stride divisible by 2 for all but last dimension, got ", t.strides);
    stride /= 2;
  }
  return geometry;
}

Geometry real(const Arg& input) { return is_complex(input.tensor->dtype) ? parts(*input.tensor, 0) : alias(input); }

Geometry imag(const Arg& input) {
  check(ErrorKind::kType, is_complex(input.tensor->dtype),
        "imag is not implemented for tensors with non-complex dtypes.");
  return parts(*input.tensor, 1);
}

}  // namespace tt::shape_rules
