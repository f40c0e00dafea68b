// Memory for an operator's result.
#pragma once

#include "engine/tensor/tensor.h"

namespace tt {

// Like allocate(), with the layout that infer() chose: contiguous, or dense in another order of dimensions.
Tensor new_result(const TensorMeta& inferred);

}  // namespace tt
