// The composite behind pointwise_chain: several pointwise calls, in one loop where their tensors allow it.
#pragma once

#include "engine/composites/composites.h"

namespace tt::composites {

// The result of the last of `steps` (engine/program/chain_code.h) over `inputs`, as a list of one. Steps whose results
// are of one shape, large, and need no gradient run as one loop on a backend that can (engine/dispatch/chain.h); others
// one by one. The values are the same. Throws Poisoned, with the error of the step that failed.
Tensors run_chain(const Tensors& inputs, SizesView steps);

}  // namespace tt::composites
