// Functions called by the composites of jagged nested tensors, in addition to operators.
#pragma once

#include "engine/composites/composites.h"

namespace tt::composites {

// The softmax over the entries of each sequence, or its logarithm. `lengths` may be undefined.
Tensor jagged_softmax_of(const Tensor& values, const Tensor& offsets, const Tensor& lengths, bool log);

}  // namespace tt::composites
