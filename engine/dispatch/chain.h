// Chain: pointwise operators in a row, for a backend that runs them as one loop.
#pragma once

#include "absl/types/span.h"
#include "engine/schema/arg.h"
#include "engine/schema/op.h"
#include "engine/tensor/tensor.h"

namespace tt {

struct ChainStep {
  const Op* op = nullptr;
  Args args;                        // complete; an earlier step's result is a kSlot with its index
  DType compute = DType::kFloat32;  // as inferred
};

// What a chain is limited to, so that a backend's loop holds it.
inline constexpr size_t kMaxChainSteps = 8;
inline constexpr size_t kMaxChainInputs = 8;  // tensors and numbers in tensors' places, all steps together
// For smaller results one loop saves less than looking for it costs.
inline constexpr int64_t kMinFusedElements = 1 << 14;

// Computes the steps in order and writes the last one's result to `out`, which is contiguous in its
// dtype or shares no byte with an argument. Requires that all steps have out's sizes and compute in
// one type, which their results are stored in (or are boolean). Throws Error.
using ChainKernel = void (*)(absl::Span<const ChainStep> steps, const Tensor& out);

}  // namespace tt
