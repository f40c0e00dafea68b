#include "engine/program/chain_types.h"

#include "engine/schema/op_ids.h"
#include "engine/schema/program_types.h"

namespace tt {

std::vector<Inference> infer_steps(const CodedSteps& steps, absl::Span<const TensorMeta* const> inputs,
                                   bool grad_enabled) {
  std::vector<Inference> made(steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    absl::InlinedVector<Arg, 4> given = steps[i].args;
    for (size_t a = 0; a < given.size(); ++a) {
      if (steps[i].from[a] < 0) continue;
      const auto from = static_cast<size_t>(steps[i].from[a]);
      given[a] = Arg(given[a].kind == Arg::Kind::kSlot ? &made[from].outputs[0] : inputs[from]);
    }
    steps[i].op->check_args(given);
    infer(*steps[i].op, given, grad_enabled, &made[i]);
  }
  return made;
}

void infer_with_chains(const Op& op, Args args, bool grad_enabled, Inference* inferred) {
  if (op.id != op_id::kPointwiseChain) return infer_in_program(op, args, grad_enabled, inferred);
  const absl::Span<const TensorMeta* const> inputs = args[0].list();
  const CodedSteps steps = read_chain(args[1].ints(), inputs.size());
  const std::vector<Inference> made = infer_steps(steps, inputs, grad_enabled);
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].kept || i + 1 == steps.size()) inferred->outputs.push_back(made[i].outputs[0]);
  }
}

}  // namespace tt
