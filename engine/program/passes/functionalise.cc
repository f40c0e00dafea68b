#include "engine/program/passes/functionalise.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "engine/program/passes/inferred_call.h"
#include "engine/program/passes/renamed_args.h"
#include "engine/program/passes/shared_memory.h"

namespace tt {
namespace {

class Functionalised {
 public:
  Functionalised(const Program& program, const ProgramTypes& types, size_t inputs) : types_(types), last_(inputs) {
    for (Slot slot = 1; slot <= inputs; ++slot) shared_.insert(slot);  // with the caller
    for (const Instruction& instruction : program.instructions()) {
      for (Slot slot : instruction.results) last_ = std::max(last_, slot);
    }
  }

  // The instruction that replaces the next instruction of the Program, over the names that have its values now.
  Instruction replace(Instruction instruction, ProgramMemory* memory) {
    const bool is_write = (instruction.flags & Instruction::kInto) != 0,
               is_replaced = is_write && may_replace(instruction);
    instruction.args = renamed_args(
        instruction.args, [this](Slot slot) { return current(slot); }, memory);
    instruction.release = {};
    if (is_replaced) {
      current_[instruction.results[0]] = ++last_;
      instruction.flags = static_cast<uint8_t>(instruction.flags & ~Instruction::kInto);
    }
    if (is_write) {
      std::vector<Slot> results;
      for (Slot slot : instruction.results) results.push_back(current(slot));
      instruction.results = memory->copy(absl::MakeConstSpan(results));
    }
    if (!has_fresh_results(*instruction.op)) {
      for (const Arg& arg : instruction.args) shared_.insert(names_in(arg).begin(), names_in(arg).end());
      shared_.insert(instruction.results.begin(), instruction.results.end());
    }
    return instruction;
  }

  Slot current(Slot slot) const {
    const auto found = current_.find(slot);
    return found == current_.end() ? slot : found->second;
  }

 private:
  bool may_replace(const Instruction& instruction) const {
    if (instruction.results.size() != 1 || last_ >= Program::kMaxNames) return false;
    const Slot target = instruction.results[0];
    // A write under no_grad() keeps the graph of the tensor that it changes. The result of a call there has no graph.
    const bool is_recorded =
        (instruction.flags & Instruction::kGrad) != 0 && (instruction.flags & Instruction::kInference) == 0;
    return has_fresh_results(*instruction.op) && !shared_.contains(current(target)) &&
           (is_recorded || !types_.of(target).requires_grad) &&
           has_result(types_.of(target), *instruction.op, instruction.args, instruction.flags, types_);
  }

  const ProgramTypes& types_;
  Slot last_;
  absl::flat_hash_set<Slot> shared_;         // names that may share memory with others
  absl::flat_hash_map<Slot, Slot> current_;  // of a name that was written: the one of its value now
};

}  // namespace

void functionalise(Program* program, const ProgramTypes& types, size_t inputs) {
  Functionalised names(*program, types, inputs);
  std::vector<Instruction> made;
  made.reserve(program->instructions().size());
  for (const Instruction& instruction : program->instructions()) {
    made.push_back(names.replace(instruction, &program->memory()));
  }
  std::vector<Slot> outputs;
  for (Slot slot : program->outputs()) outputs.push_back(names.current(slot));
  program->mutable_instructions() = std::move(made);
  program->set_outputs(outputs);
}

}  // namespace tt
