#include "engine/program/passes/pointwise_call.h"

#include "engine/dispatch/chain_reduction.h"

namespace tt {

namespace {

bool has_one_new_result(const Instruction& instruction) {
  return instruction.results.size() == 1 && (instruction.flags & Instruction::kInto) == 0 &&
         instruction.args.size() <= instruction.op->params.size();
}

}  // namespace

bool is_pointwise_call(const Instruction& instruction) {
  return instruction.op->is_pointwise && has_one_new_result(instruction);
}

bool is_reduction_call(const Instruction& instruction) {
  return ends_chain(*instruction.op) && has_one_new_result(instruction) && !instruction.args.empty() &&
         instruction.args[0].kind == Arg::Kind::kSlot;
}

bool has_valid_args(const Instruction& instruction) {
  constexpr uint32_t kLongString = 64;
  const absl::Span<const Param> params = instruction.op->params;
  for (size_t i = 0; i < params.size(); ++i) {
    if (i >= instruction.args.size()) {
      if (!params[i].has_default && !params[i].optional) return false;
      continue;
    }
    const Arg& arg = instruction.args[i];
    if (!params[i].accepts_in_program(arg) || (arg.kind == Arg::Kind::kString && arg.size > kLongString)) return false;
  }
  return true;
}

}  // namespace tt
