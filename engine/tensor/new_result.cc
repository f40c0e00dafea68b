#include "engine/tensor/new_result.h"

#include "engine/schema/layout.h"

namespace tt {

Tensor new_result(const TensorMeta& inferred) {
  Tensor t = allocate(inferred);
  const bool has_layout = t->strides == inferred.strides;
  if (!has_layout && inferred.offset == 0 && is_dense(inferred.sizes, inferred.strides)) [[unlikely]]
    t->strides = inferred.strides;
  return t;
}

}  // namespace tt
