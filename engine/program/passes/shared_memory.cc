#include "engine/program/passes/shared_memory.h"

#include <algorithm>
#include <iterator>

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

}  // namespace tt
