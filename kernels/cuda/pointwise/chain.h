// Runs a chain of pointwise operators as one kernel if it can be compiled, else one after the other.
#pragma once

#include "engine/dispatch/chain.h"

namespace tt::cuda {

// A ChainKernel (engine/dispatch/chain.h). Compiles a kernel at a chain's first run and caches it. Throws
// NotImplementedError for chains with an integer division, because each division must report its own zero divisors.
void run_chain(absl::Span<const ChainStep> steps, const Tensor& out);

}  // namespace tt::cuda
