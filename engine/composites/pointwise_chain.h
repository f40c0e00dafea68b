// The composite of pointwise_chain: several pointwise calls, in one loop if their tensors allow it.
#pragma once

#include "engine/composites/composites.h"

namespace tt::composites {

// Returns the result of the last of `steps` (engine/program/chain_code.h) over `inputs`, as a list of one tensor. Steps
// whose results have one shape, are large, and need no gradient run as one loop if the backend supports it
// (engine/dispatch/chain.h); other steps run one by one. The values are the same. Throws Poisoned with the failed
// step's error.
Tensors run_chain(const Tensors& inputs, SizesView steps);

}  // namespace tt::composites
