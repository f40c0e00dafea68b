#include "engine/program/passes/merge_equal.h"

#include <algorithm>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

namespace tt {
namespace {

bool may_merge(const Instruction& instruction) { return !instruction.op->is_random && !instruction.results.empty(); }

// The instruction as a Program of its own, without names for results, which is compared by all that determines values.
Program key_of(const Instruction& instruction) {
  Program key;
  Instruction& copy = key.add(*instruction.op, instruction.args, {});
  copy.flags = instruction.flags;
  return key;
}

}  // namespace

bool writes_in_place(const Program& program) {
  return std::any_of(program.instructions().begin(), program.instructions().end(), [](const Instruction& instruction) {
    const auto& params = instruction.op->params;
    return (instruction.flags & Instruction::kInto) != 0 ||
           std::any_of(params.begin(), params.end(), [](const Param& param) { return param.written; });
  });
}

void merge_equal(Program* program) {
  if (writes_in_place(*program)) return;
  absl::flat_hash_set<Slot> outputs(program->outputs().begin(), program->outputs().end());
  absl::flat_hash_map<Slot, Slot> same;  // of a removed result: the one that replaces it
  absl::flat_hash_map<Program, absl::Span<const Slot>> seen;
  const auto renamed = [&](Slot slot) {
    const auto found = same.find(slot);
    return found == same.end() ? slot : found->second;
  };
  ProgramMemory& memory = program->memory();
  std::vector<Instruction> kept;
  for (Instruction instruction : program->instructions()) {
    absl::Span<Arg> args = memory.allocate<Arg>(instruction.args.size());
    for (size_t i = 0; i < args.size(); ++i) {
      Arg arg = instruction.args[i];
      if (arg.kind == Arg::Kind::kSlot) arg.slot = renamed(arg.slot);
      if (arg.kind == Arg::Kind::kSlots) {
        absl::Span<Slot> slots = memory.allocate<Slot>(arg.size);
        for (uint32_t k = 0; k < arg.size; ++k) slots[k] = renamed(arg.slots[k]);
        arg.slots = slots.data();
      }
      new (&args[i]) Arg(arg);
    }
    instruction.args = args;
    instruction.release = {};
    // Two outputs must stay two tensors, because the client may write to one of them.
    const auto is_output = [&](Slot slot) { return outputs.contains(slot); };
    if (may_merge(instruction) && std::none_of(instruction.results.begin(), instruction.results.end(), is_output)) {
      const auto [at, is_new] = seen.try_emplace(key_of(instruction), instruction.results);
      if (!is_new && at->second.size() == instruction.results.size()) {
        for (size_t i = 0; i < instruction.results.size(); ++i) same[instruction.results[i]] = at->second[i];
        continue;
      }
    }
    kept.push_back(instruction);
  }
  program->mutable_instructions() = std::move(kept);
}

}  // namespace tt
