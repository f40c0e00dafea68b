// Runs one pointwise operator, or a chain of them, as one loop.
#pragma once

#include <memory>

#include "engine/dispatch/chain.h"
#include "kernels/cpu/iteration/block.h"
#include "kernels/cpu/loops/block_source.h"

namespace tt::cpu {

// A ChainKernel (engine/dispatch/chain.h); `out` may have any layout.
void run_chain(absl::Span<const ChainStep> steps, const Tensor& out);

// A ChainPreparation (engine/dispatch/chain.h): plans loops of float32 and float64 whose result is contiguous.
std::unique_ptr<PreparedChain> prepare_chain(absl::Span<const ChainStep> steps, absl::Span<const Tensor> inputs,
                                             const Tensor& out);

// The values of a chain whose result is contiguous and float32 or float64, as all its steps' compute dtypes. Results
// that are kept are stored when the values are read. `shape` has the result's sizes and dtype, and no data. What the
// steps refer to must outlive the source.
std::unique_ptr<BlockSource> chain_values(absl::Span<const ChainStep> steps, const Tensor& shape);

// The block functions of a pointwise operator.
const PointwiseRow& row_of(uint16_t op);

}  // namespace tt::cpu
