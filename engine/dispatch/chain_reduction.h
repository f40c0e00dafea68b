// Reductions at the end of a chain (chain.h), which read the chain's last result while it is in the cache.
#pragma once

#include "engine/schema/arg.h"
#include "engine/schema/meta.h"
#include "engine/schema/op.h"
#include "engine/schema/op_ids.h"
#include "engine/tensor/tensor.h"

namespace tt {

// Whether the operator may be the last step of a chain. Its first argument is then the result of the step before, its
// other arguments are values.
inline bool ends_chain(const Op& op) {
  return op.id == op_id::kSum || op.id == op_id::kNansum || op.id == op_id::kMean || op.id == op_id::kProd;
}

// Whether the backend's ChainKernel accepts such a step. It requires that the result of the step before is contiguous
// and float32 or float64, as the reduction's is. Of the steps before, it stores only results that are kept. The bits
// are those of the operators one by one.
inline bool reduces_chains(DeviceType backend) { return backend == DeviceType::kCPU; }

// Whether the loop of the preceding steps also computes a reduction (kInLoop), or the reason why it does not. In the
// loop, the reduction is divided among threads as it is alone, by outputs or by pieces of its input, so that it has the
// same bits. If there are fewer outputs or pieces than threads, the preceding steps run faster as a loop of their own.
// If only short runs of neighbouring elements are all reduced or all kept, rows are too short for the loop.
enum class ReductionPlace : uint8_t { kInLoop, kOtherLayout, kFewParts, kShortRuns };
inline constexpr int64_t kMinReducedRun = 512;  // elements
// Of a reduction of `input` over `dims`, its second argument, to `result`.
ReductionPlace place_of_reduction(const TensorMeta& input, const TensorMeta& result, const Arg& dims, int threads);

}  // namespace tt
