// Checks and conversion of index tensors, before their elements are read.
#pragma once

#include "engine/schema/error.h"
#include "engine/tensor/tensor.h"

namespace tt {

// A backend's conversion: `t` itself if it is contiguous and has `dtype`, else a copy.
using ContiguousAs = Tensor (*)(const Tensor& t, DType dtype);

// Throws Error (IndexError) if `index` is not of an integer dtype.
inline void check_index_dtype(const Tensor& index) {
  check(ErrorKind::kIndex, category(index.dtype()) == Category::kInteger,
        "tensors used as indices must be integer or bool tensors, got ", name(index.dtype()));
}

// `index` as int64, in any layout. Throws Error (IndexError) if it is not of an integer dtype.
inline Tensor index_values(ContiguousAs contiguous_as, const Tensor& index) {
  check_index_dtype(index);
  return index.dtype() == DType::kInt64 ? index : contiguous_as(index, DType::kInt64);
}

// Throws Error (IndexError) if there are indices into a dimension of size 0.
inline void check_indexable(int64_t dim, int64_t size, int64_t count) {
  check(ErrorKind::kIndex, size > 0 || count == 0, "index is out of bounds for dimension ", dim, " with size 0");
}

// The strides of `t`, with 0 for the indexed dimension.
inline Sizes strides_without_dim(const Tensor& t, int64_t dim) {
  Sizes strides = t.strides();
  strides[dim] = 0;
  return strides;
}

}  // namespace tt
