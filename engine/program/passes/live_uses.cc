#include "engine/program/passes/live_uses.h"

namespace tt {
namespace {

template <typename Visit>
void visit_reads(const Instruction& instruction, const Visit& visit) {
  for (const Arg& arg : instruction.args) {
    for (Slot slot : names_in(arg)) {
      if (slot != 0) visit(slot);
    }
  }
  if ((instruction.flags & Instruction::kInto) == 0) return;
  for (Slot slot : instruction.results) visit(slot);
}

}  // namespace

LiveUses::LiveUses(const Program& program) {
  const auto& instructions = program.instructions();
  for (size_t i = 0; i < instructions.size(); ++i) {
    add_reads(instructions[i]);
    if ((instructions[i].flags & Instruction::kInto) != 0) continue;
    for (Slot slot : instructions[i].results) names_[slot].definition = static_cast<int>(i);
  }
  for (Slot slot : program.outputs()) names_[slot].is_output = true;
}

const LiveUses::Name* LiveUses::find(Slot slot) const {
  const auto found = names_.find(slot);
  return found == names_.end() ? nullptr : &found->second;
}

bool LiveUses::is_read(Slot slot) const {
  const Name* name = find(slot);
  return name != nullptr && (name->is_output || name->reads > 0);
}

void LiveUses::add_reads(const Instruction& instruction) {
  visit_reads(instruction, [&](Slot slot) { ++names_[slot].reads; });
}

void LiveUses::remove_reads(const Instruction& instruction) {
  visit_reads(instruction, [&](Slot slot) { --names_[slot].reads; });
}

size_t LiveUses::count_reads(const Instruction& instruction, Slot slot) {
  size_t count = 0;
  visit_reads(instruction, [&](Slot read) { count += read == slot; });
  return count;
}

}  // namespace tt
