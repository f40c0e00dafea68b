#include "engine/program/passes/remove_unused.h"

#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "engine/program/passes/stateful.h"
#include "engine/program/passes/writes.h"

namespace tt {
namespace {

template <typename Visit>
void visit_names(const Instruction& instruction, const Visit& visit) {
  for (const Arg& arg : instruction.args) {
    for (Slot slot : names_in(arg)) {
      if (slot != 0) visit(slot);
    }
  }
  for (Slot slot : instruction.results) visit(slot);
}

bool must_run(const Instruction& instruction) {
  return instruction.results.empty() || is_stateful(instruction) || writes_in_place(instruction);
}

void remove_dead(Program* program) {
  std::vector<Instruction>& instructions = program->mutable_instructions();
  absl::flat_hash_set<Slot> used(program->outputs().begin(), program->outputs().end());
  std::vector<Instruction> kept;
  for (auto at = instructions.rbegin(); at != instructions.rend(); ++at) {
    const auto is_used = [&](Slot slot) { return used.contains(slot); };
    if (!must_run(*at) && std::none_of(at->results.begin(), at->results.end(), is_used)) continue;
    visit_names(*at, [&](Slot slot) { used.insert(slot); });
    kept.push_back(*at);
  }
  std::reverse(kept.begin(), kept.end());
  instructions = std::move(kept);
}

void set_releases(Program* program) {
  std::vector<Instruction>& instructions = program->mutable_instructions();
  const absl::flat_hash_set<Slot> outputs(program->outputs().begin(), program->outputs().end());
  absl::flat_hash_map<Slot, size_t> last_use;
  for (size_t i = 0; i < instructions.size(); ++i) {
    visit_names(instructions[i], [&](Slot slot) { last_use[slot] = i; });
  }
  std::vector<std::vector<Slot>> dropped(instructions.size());
  for (size_t i = 0; i + 1 < instructions.size(); ++i) {
    visit_names(instructions[i], [&](Slot slot) {
      const auto found = last_use.find(slot);
      if (found == last_use.end() || found->second != i || outputs.contains(slot)) return;
      dropped[i + 1].push_back(slot);
      last_use.erase(found);  // once, if the instruction has the name twice
    });
  }
  for (size_t i = 0; i < instructions.size(); ++i) {
    instructions[i].release = program->memory().copy(absl::MakeConstSpan(dropped[i]));
  }
}

}  // namespace

void remove_unused(Program* program) {
  remove_dead(program);
  set_releases(program);
}

}  // namespace tt
