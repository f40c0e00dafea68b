#include "engine/program/passes/renamed_args.h"

#include <algorithm>
#include <vector>

namespace tt {

Slot last_name(const Program& program) {
  Slot last = 0;
  const auto add = [&](absl::Span<const Slot> names) {
    for (Slot name : names) last = std::max(last, name);
  };
  for (const Instruction& instruction : program.instructions()) {
    add(instruction.results);
    for (const Arg& arg : instruction.args) add(names_in(arg));
  }
  add(program.outputs());
  return last;
}

Args renamed_args(Args args, absl::FunctionRef<Slot(Slot)> name_of, ProgramMemory* memory) {
  const auto renamed = [&](Slot slot) { return slot == 0 ? 0 : name_of(slot); };
  absl::Span<Arg> made = memory->allocate<Arg>(args.size());
  for (size_t i = 0; i < args.size(); ++i) {
    Arg arg = args[i];
    if (arg.kind == Arg::Kind::kSlot) arg.slot = renamed(arg.slot);
    if (arg.kind == Arg::Kind::kSlots) {
      absl::Span<Slot> slots = memory->allocate<Slot>(arg.size);
      for (uint32_t k = 0; k < arg.size; ++k) slots[k] = renamed(arg.slots[k]);
      arg.slots = slots.data();
    }
    new (&made[i]) Arg(arg);
  }
  return made;
}

void append_renamed(Instruction instruction, absl::FunctionRef<Slot(Slot)> name_of, Program* to) {
  instruction.args = to->copy_args(renamed_args(instruction.args, name_of, &to->memory()));
  std::vector<Slot> results;
  for (Slot slot : instruction.results) results.push_back(name_of(slot));
  instruction.results = to->memory().copy(absl::MakeConstSpan(results));
  instruction.release = {};
  to->mutable_instructions().push_back(instruction);
}

}  // namespace tt
