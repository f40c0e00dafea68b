// Runs one pointwise operator, or a chain of them, as one loop.
#pragma once

#include "engine/dispatch/chain.h"
#include "kernels/cpu/iteration/block.h"

namespace tt::cpu {

// A ChainKernel (engine/dispatch/chain.h); `out` may have any layout.
void run_chain(absl::Span<const ChainStep> steps, const Tensor& out);

// The block functions of a pointwise operator.
const PointwiseRow& row_of(uint16_t op);

}  // namespace tt::cpu
