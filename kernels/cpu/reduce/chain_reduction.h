// Chains of pointwise operators that end with a reduction.
#pragma once

#include "engine/dispatch/chain.h"

namespace tt::cpu {

// A ChainKernel that accepts reductions (engine/dispatch/chain_reduction.h), too.
void run_chain_or_reduction(absl::Span<const ChainStep> steps, const Tensor& out);

}  // namespace tt::cpu
