// What the passes that fuse pointwise instructions have in common.
#pragma once

#include "engine/schema/program.h"

namespace tt {

// Whether the instruction computes one new result by a pointwise operator.
bool is_pointwise_call(const Instruction& instruction);
// Whether the instruction computes one new result by a reduction that may end a chain (dispatch/chain_reduction.h).
bool is_reduction_call(const Instruction& instruction);
// Whether the call would pass Op::check_args(). Returns false for long strings, because steps are copied.
bool has_valid_args(const Instruction& instruction);

// Whether argument `a` is a number that is passed for a tensor, so that a loop reads it like one.
inline bool is_number_for_tensor(const Instruction& instruction, size_t a) {
  return instruction.args[a].is_number() && a < instruction.op->params.size() &&
         instruction.op->params[a].type == ParamType::kTensor;
}

}  // namespace tt
