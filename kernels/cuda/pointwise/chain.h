// Pointwise operators in a row, as one loop where a kernel can be compiled for it, else one after the other.
#pragma once

#include "engine/dispatch/chain.h"

namespace tt::cuda {

// A ChainKernel (engine/dispatch/chain.h). Kernels are compiled at a chain's first run and kept. Refuses, with
// NotImplementedError, chains that divide integers: each division answers for itself where a divisor is zero.
void run_chain(absl::Span<const ChainStep> steps, const Tensor& out);

}  // namespace tt::cuda
