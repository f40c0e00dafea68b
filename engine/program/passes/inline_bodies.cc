#include "engine/program/passes/inline_bodies.h"

#include <algorithm>
#include <vector>

#include "engine/program/passes/pointwise_call.h"
#include "engine/program/passes/renamed_args.h"
#include "engine/schema/custom_table.h"
#include "engine/schema/error.h"

namespace tt {
namespace {

const CustomOperator* body_of(const Instruction& instruction) {
  if (!is_custom(instruction.op->id) || (instruction.flags & Instruction::kInto)) return nullptr;
  const CustomOperator* const op = find_custom_op(instruction.op->id);
  return op->has_body() && has_valid_args(instruction) ? op : nullptr;
}

// All arguments of the instruction, with the omitted ones.
std::vector<Arg> complete(const Instruction& instruction) {
  std::vector<Arg> args(instruction.args.begin(), instruction.args.end());
  for (size_t i = args.size(); i < instruction.op->params.size(); ++i)
    args.push_back(instruction.op->params[i].default_value);
  return args;
}

// Appends the steps to `made`. Returns false, without an effect, if there are no steps for the arguments.
bool append_steps(const CustomOperator& op, const Instruction& call, Slot* last, Program* program,
                  std::vector<Instruction>* made) {
  const std::vector<Arg> given = complete(call);
  std::vector<BodyStep> steps;
  try {
    steps = op.steps(given);
  } catch (const Error&) {
    return false;  // the call reports it
  }
  if (*last + steps.size() > Program::kMaxNames) return false;
  std::vector<Slot> results(steps.size());
  for (size_t i = 0; i + 1 < steps.size(); ++i) results[i] = ++*last;
  results.back() = call.results[0];
  for (size_t i = 0; i < steps.size(); ++i) {
    std::vector<Arg> args;
    for (const BodyStep::Source& source : steps[i].sources) {
      args.push_back(source.from == BodyStep::Source::From::kValue      ? source.value
                     : source.from == BodyStep::Source::From::kArgument ? given[source.index]
                                                                        : slot_arg(results[source.index]));
    }
    Instruction& step = made->emplace_back(call);
    step.op = steps[i].op;
    step.args = program->copy_args(args);
    step.results = program->memory().copy(absl::MakeConstSpan(&results[i], 1));
    if (i > 0) step.release = {};
  }
  return true;
}

}  // namespace

bool has_bodies(const Program& program) {
  return std::any_of(program.instructions().begin(), program.instructions().end(),
                     [](const Instruction& instruction) { return body_of(instruction) != nullptr; });
}

void inline_bodies(Program* program) {
  Slot last = last_name(*program);
  std::vector<Instruction> made;
  for (const Instruction& instruction : program->instructions()) {
    const CustomOperator* const op = body_of(instruction);
    if (op == nullptr || !append_steps(*op, instruction, &last, program, &made)) made.push_back(instruction);
  }
  program->mutable_instructions() = std::move(made);
}

}  // namespace tt
