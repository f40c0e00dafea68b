#include "engine/program/passes/remove_identities.h"

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "engine/program/passes/shared_memory.h"
#include "engine/program/passes/writes.h"
#include "engine/schema/op_ids.h"

namespace tt {
namespace {

// The argument that the call returns unchanged, or 0.
Slot identity_of(const Instruction& instruction, const ProgramTypes& types) {
  if (instruction.op->id != op_id::kMul || instruction.results.size() != 1) return 0;
  const Arg &a = instruction.args[0], &b = instruction.args[1];
  const bool is_first = a.kind == Arg::Kind::kSlot && b.is_real_number() && b.to_double() == 1;
  const bool is_second = b.kind == Arg::Kind::kSlot && a.is_real_number() && a.to_double() == 1;
  if (!is_first && !is_second) return 0;
  const Slot same = is_first ? a.slot : b.slot;
  const TensorMeta &from = types.of(same), &to = types.of(instruction.results[0]);
  const bool is_equal = from.dtype == to.dtype && from.sizes == to.sizes && from.strides == to.strides &&
                        from.device == to.device && !to.requires_grad;
  return is_equal ? same : 0;
}

}  // namespace

void remove_identities(Program* program, const ProgramTypes& types) {
  if (writes_in_place(*program)) return;
  const absl::flat_hash_set<Slot> shared = names_shared_with_outputs(*program);
  absl::flat_hash_map<Slot, Slot> same;
  const auto name_of = [&](Slot slot) {
    const auto found = same.find(slot);
    return found == same.end() ? slot : found->second;
  };
  std::vector<Instruction> kept;
  for (const Instruction& instruction : program->instructions()) {
    const Slot argument = identity_of(instruction, types);
    if (argument != 0 && !shared.contains(instruction.results[0])) {
      same[instruction.results[0]] = name_of(argument);
    } else {
      kept.push_back(instruction);
      kept.back().release = {};
    }
  }
  program->mutable_instructions() = std::move(kept);
  if (!same.empty()) program->rename(name_of);
}

}  // namespace tt
