// Chain: consecutive pointwise operators that a backend runs as one loop.
#pragma once

#include <memory>

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

// Limits of a loop. `inputs` are tensors, and numbers passed for tensors, over all steps.
struct ChainLimits {
  size_t steps, inputs;
};
inline constexpr size_t kMaxChainSteps = 64, kMaxChainInputs = 48;     // of all backends
inline constexpr ChainLimits kShortChain = {.steps = 8, .inputs = 8};  // accepted by all backends
inline constexpr ChainLimits chain_limits(DeviceType backend) {
  return backend == DeviceType::kCPU ? ChainLimits{kMaxChainSteps, kMaxChainInputs} : kShortChain;
}
// Minimum number of elements of a result to fuse: in frames, of which each must be searched for chains, and in
// Programs. For smaller results, fusing costs more than it saves.
inline constexpr int64_t kMinFusedElements = 1 << 14;
inline constexpr int64_t kMinRegionElements = 1 << 4;

// Whether the backend's kernel stores the results of steps other than the last one.
inline bool keeps_chain_results(DeviceType backend) { return backend == DeviceType::kCPU; }

// Computes the steps in order and writes the last result to `out`. Requires that `out` is contiguous, has the last
// result's dtype and shares no byte with an argument, that all steps have out's sizes and the same compute dtype, that
// each result has that dtype or is boolean, and that the backend's limits are kept. Throws Error.
using ChainKernel = void (*)(absl::Span<const ChainStep> steps, const Tensor& out);

// A chain that a backend has planned once, and runs with other operands that have the same metadata.
class PreparedChain {
 public:
  virtual ~PreparedChain() = default;
  // Computes what the ChainKernel would, with the same bits. `kept` are the tensors of the steps that are kept, in
  // order; `out` shares no byte with an input. Returns false, and computes nothing, while another thread is inside.
  virtual bool run(absl::Span<const Tensor> inputs, absl::Span<const Tensor> kept, const Tensor& out) = 0;
};

// Plans a chain for the ChainKernel's arguments, and forgets their data. `inputs` contains every tensor among the steps'
// arguments; run() receives as many. Null if the backend cannot plan such a chain, or it would gain nothing.
using ChainPreparation = std::unique_ptr<PreparedChain> (*)(absl::Span<const ChainStep> steps,
                                                            absl::Span<const Tensor> inputs, const Tensor& out);

}  // namespace tt
