#include "engine/program/passes/shared_memory.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "engine/program/may_return_views.h"  // generated

namespace tt {

bool has_fresh_results(const Op& op) {
  static const auto* const views =
      new absl::flat_hash_set<uint16_t>(std::begin(kMayReturnViews), std::end(kMayReturnViews));
  return !views->contains(op.id);
}

absl::flat_hash_set<Slot> names_shared_with_outputs(const Program& program) {
  absl::flat_hash_set<Slot> shared(program.outputs().begin(), program.outputs().end());
  const auto& instructions = program.instructions();
  for (auto at = instructions.rbegin(); at != instructions.rend(); ++at) {
    const auto is_shared = [&](Slot slot) { return shared.contains(slot); };
    if (has_fresh_results(*at->op) || std::none_of(at->results.begin(), at->results.end(), is_shared)) continue;
    for (const Arg& arg : at->args) shared.insert(names_in(arg).begin(), names_in(arg).end());
  }
  return shared;
}

void for_each_written(const Instruction& instruction, absl::FunctionRef<void(Slot)> visit) {
  if ((instruction.flags & Instruction::kInto) != 0) {
    for (Slot slot : instruction.results) visit(slot);
  }
  const auto& params = instruction.op->params;
  for (size_t i = 0; i < instruction.args.size() && i < params.size(); ++i) {
    if (!params[i].written) continue;
    for (Slot slot : names_in(instruction.args[i])) {
      if (slot != 0) visit(slot);
    }
  }
}

MemoryGroups::MemoryGroups(const Program& program) {
  for (const Instruction& instruction : program.instructions()) {
    const bool is_fresh = has_fresh_results(*instruction.op);
    // A composite may return views of a result that it has computed.
    if (is_fresh && (!instruction.op->is_composite || instruction.results.size() < 2)) continue;
    Slot first = 0;
    const auto add = [&](Slot slot) {
      if (slot == 0) return;
      if (first != 0) join(first, slot);
      first = slot;
    };
    for (Slot slot : instruction.results) add(slot);
    if (is_fresh) continue;
    for (const Arg& arg : instruction.args) {
      for (Slot slot : names_in(arg)) add(slot);
    }
  }
}

Slot MemoryGroups::of(Slot slot) const {
  Slot root = slot;
  for (auto at = parents_.find(root); at != parents_.end(); at = parents_.find(root)) root = at->second;
  while (slot != root) slot = std::exchange(parents_.at(slot), root);
  return root;
}

void MemoryGroups::join(Slot a, Slot b) {
  const Slot x = of(a), y = of(b);
  if (x != y) parents_[x] = y;
}

}  // namespace tt
