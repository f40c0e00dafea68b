// What every backend asks of the tensors that index others, before it looks at their elements.
#pragma once

#include "engine/schema/error.h"
#include "engine/tensor/tensor.h"

namespace tt {

// Throws Error (IndexError) where `index` holds no integers.
inline void check_index_dtype(const Tensor& index) {
  check_as(ErrorKind::kIndex, category(index.dtype()) == Category::kInteger,
           "tensors used as indices must be integer or bool tensors, got ", name(index.dtype()));
}

// Throws where there are `count` indices into a dimension of no elements: none can be right.
inline void check_indexable(int64_t dim, int64_t size, int64_t count) {
  check_as(ErrorKind::kIndex, size > 0 || count == 0, "index is out of bounds for dimension ", dim, " with size 0");
}

// `strides` of the indexed tensor, with the indexed dimension taken out.
inline Sizes strides_around(const Tensor& t, int64_t dim) {
  Sizes strides = t.strides();
  strides[dim] = 0;
  return strides;
}

}  // namespace tt
