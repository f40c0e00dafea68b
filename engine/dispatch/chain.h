// Chain: consecutive pointwise operators that a backend runs as one loop.
#pragma once

#include "absl/types/span.h"
#include "engine/schema/arg.h"
#include "engine/schema/op.h"
#include "engine/tensor/tensor.h"

namespace tt {

struct ChainStep {
  const Op* op = nullptr;
  Args args;                        // all arguments; an earlier step's result is a kSlot with the step's index
  DType compute = DType::kFloat32;  // the inferred compute dtype
  // If not null, receives the step's result, too: a tensor with the sizes, the layout and the dtype of `out`, of which
  // it shares no byte. Only if the backend's kernel keeps results (keeps_chain_results()).
  const Tensor* kept = nullptr;
};

// Limits that a backend's loop relies on.
inline constexpr size_t kMaxChainSteps = 8;
inline constexpr size_t kMaxChainInputs = 8;  // tensors, and numbers passed for tensors, over all steps
// Minimum number of elements of a result to fuse. For smaller results, fusing costs more than it saves.
inline constexpr int64_t kMinFusedElements = 1 << 14;

// Whether the backend's kernel stores the results of steps other than the last one.
inline bool keeps_chain_results(DeviceType backend) { return backend == DeviceType::kCPU; }

// Computes the steps in order and writes the last result to `out`. Requires that `out` is contiguous, has the last
// result's dtype and shares no byte with an argument, that all steps have out's sizes and the same compute dtype, and
// that each result has that dtype or is boolean. Throws Error.
using ChainKernel = void (*)(absl::Span<const ChainStep> steps, const Tensor& out);

}  // namespace tt
