#include "engine/dispatch/chain_reduction.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "engine/schema/rules/shape_rules.h"

namespace tt {
namespace {

// The number of neighbouring elements that are all reduced or all kept.
int64_t shortest_run(const TensorMeta& input, const Arg& dims) {
  absl::InlinedVector<bool, 8> is_reduced(input.sizes.size(), dims.kind != Arg::Kind::kInts || dims.size == 0);
  for (uint32_t i = 0; dims.kind == Arg::Kind::kInts && i < dims.size; ++i) {
    is_reduced[static_cast<size_t>(shape_rules::wrap_dim(dims.integers[i], input.dim()))] = true;
  }
  int64_t run = 1;
  for (size_t d = is_reduced.size(); d-- > 0 && is_reduced[d] == is_reduced.back();) run *= input.sizes[d];
  return run;
}

}  // namespace

ReductionPlace place_of_reduction(const TensorMeta& input, const TensorMeta& result, const Arg& dims, int threads) {
  if (!input.is_contiguous()) return ReductionPlace::kOtherLayout;
  constexpr int64_t kPiece = 256 * 1024;  // as in kernels/cpu/loops/reduce_driver.h
  const int64_t parts = std::max(result.numel(), input.numel() / kPiece);
  if (parts < threads) return ReductionPlace::kFewParts;
  return shortest_run(input, dims) < kMinReducedRun ? ReductionPlace::kShortRuns : ReductionPlace::kInLoop;
}

}  // namespace tt
