// ChainCode: the `steps` argument of pointwise_chain, which encodes several pointwise calls, and perhaps a reduction of
// the last result (dispatch/chain_reduction.h), as a list of integers.
//
// Each step contains its operator's id, its source line, its result's name and its arguments. An argument is an input
// of the chain, the result of an earlier step, or a value. The pass fuse_pointwise writes the code, and the composite
// run_chain reads it. The code may also arrive over the wire, so reading checks everything.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "engine/dispatch/chain.h"
#include "engine/schema/arg.h"
#include "engine/schema/op.h"

namespace tt {

class ChainWriter {
 public:
  void clear() { code_.clear(); }
  // `result` is the name that the result of the replaced instruction had. The chain returns the results of the steps
  // that are `kept`, and that of the last step.
  void begin_step(const Op& op, uint32_t site, uint64_t result, size_t args, bool kept = false);
  void add_input(size_t index);   // an index into the chain's inputs
  void add_result(size_t index);  // an index into the earlier steps
  void add_value(const Arg& arg);
  absl::Span<const int64_t> code() const { return code_; }

 private:
  std::vector<int64_t> code_;
};

// A decoded step with complete arguments. An input is a kTensor without a tensor; an earlier result is a kSlot without
// a name. `from` contains the index of the input or result, or -1 for a value.
struct CodedStep {
  const Op* op = nullptr;
  uint32_t site = 0;
  uint64_t result = 0;
  bool kept = false;
  absl::InlinedVector<Arg, 4> args;
  absl::InlinedVector<int8_t, 4> from;
};

using CodedSteps = absl::InlinedVector<CodedStep, kShortChain.steps>;

// Decodes `code`; the result points into it. Throws Error (ValueError) unless `code` has 1 to kMaxChainSteps steps of
// pointwise operators, of which the last may be a reduction of the one before, and `inputs`, the number of the chain's
// inputs, is at most kMaxChainInputs.
CodedSteps read_chain(absl::Span<const int64_t> code, size_t inputs);

// Appends the code without source lines and names of results to `words`: chains with equal words compute the same.
// Returns false if the code is invalid; read_chain() reports why.
bool append_computation(absl::Span<const int64_t> code, std::vector<int64_t>* words);

}  // namespace tt
