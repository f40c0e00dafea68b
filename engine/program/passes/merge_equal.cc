#include "engine/program/passes/merge_equal.h"

#include <algorithm>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "engine/program/passes/renamed_args.h"
#include "engine/program/passes/shared_memory.h"
#include "engine/program/passes/stateful.h"
#include "engine/program/passes/writes.h"
#include "engine/schema/op_ids.h"

namespace tt {
namespace {

// A backward pass frees what the calls have saved, and two results of one must stay two tensors.
bool may_merge(const Instruction& instruction) {
  return !is_stateful(instruction) && !instruction.results.empty() && instruction.op->id != op_id::kBackward;
}

// An instruction, compared by what determines its values. absl's hash is seeded, so that a Program cannot be made of
// calls whose hashes are equal.
struct SameCall {
  const Instruction* instruction;

  friend bool operator==(const SameCall& a, const SameCall& b) { return is_same_call(*a.instruction, *b.instruction); }
  template <typename H>
  friend H AbslHashValue(H h, const SameCall& call) {
    h = H::combine(std::move(h), call.instruction->op->id, call.instruction->flags);
    for (const Arg& arg : call.instruction->args) {
      h = H::combine(std::move(h), arg.kind, names_in(arg));
      switch (arg.kind) {
        case Arg::Kind::kInts: h = H::combine(std::move(h), arg.ints()); break;
        case Arg::Kind::kFloats: h = H::combine(std::move(h), arg.floats()); break;
        case Arg::Kind::kString: h = H::combine(std::move(h), arg.string()); break;
        case Arg::Kind::kNone:
        case Arg::Kind::kSlot:
        case Arg::Kind::kSlots: break;
        default: h = H::combine(std::move(h), arg.integer);
      }
    }
    return h;
  }
};

}  // namespace

void merge_equal(Program* program, const ProgramTypes& types, bool recorded) {
  if (writes_in_place(*program)) return;
  absl::flat_hash_set<Slot> shared = names_shared_with_outputs(*program);
  for (const Instruction& instruction : program->instructions()) {
    if (instruction.op->id != op_id::kBackward && instruction.op->id != op_id::kRequiresGrad) continue;
    for (const Arg& arg : instruction.args) shared.insert(names_in(arg).begin(), names_in(arg).end());
  }
  absl::flat_hash_map<Slot, Slot> same;  // of a removed result: the one that replaces it
  absl::flat_hash_set<SameCall> seen;    // pointers into `kept`
  const auto renamed = [&](Slot slot) {
    const auto found = same.find(slot);
    return found == same.end() ? slot : found->second;
  };
  std::vector<Instruction> kept;
  kept.reserve(program->instructions().size());  // its elements stay where they are
  for (Instruction instruction : program->instructions()) {
    instruction.args = renamed_args(instruction.args, renamed, &program->memory());
    instruction.release = {};
    // Two outputs must stay two tensors, because the client may write to one of them.
    const auto is_kept = [&](Slot slot) {
      return shared.contains(slot) || (!recorded && types.of(slot).requires_grad);
    };
    const bool merges =
        may_merge(instruction) && std::none_of(instruction.results.begin(), instruction.results.end(), is_kept);
    const auto found = merges ? seen.find(SameCall{&instruction}) : seen.end();
    if (found != seen.end() && found->instruction->results.size() == instruction.results.size()) {
      const absl::Span<const Slot> first = found->instruction->results;
      for (size_t i = 0; i < first.size(); ++i) same[instruction.results[i]] = first[i];
      continue;
    }
    kept.push_back(instruction);
    if (merges) seen.insert(SameCall{&kept.back()});
  }
  program->mutable_instructions() = std::move(kept);
}

}  // namespace tt
