#include "engine/program/passes/remove_copies.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "engine/program/passes/renamed_args.h"
#include "engine/program/passes/shared_memory.h"
#include "engine/schema/op_ids.h"

namespace tt {
namespace {

// What happens to the memory of a group of names.
struct Use {
  bool has_input = false;
  bool has_output = false;
  int64_t bytes = 0;         // of the values that calls store in it
  size_t end_of_writes = 0;  // after the last instruction that writes it; 0: none
  size_t end_of_reads = 0;   // after the last instruction that has one of its names

  void add(const Use& other) {
    has_input |= other.has_input;
    has_output |= other.has_output;
    bytes = std::max(bytes, other.bytes);
    end_of_writes = std::max(end_of_writes, other.end_of_writes);
    end_of_reads = std::max(end_of_reads, other.end_of_reads);
  }
};

int64_t bytes_of(const TensorMeta& meta) { return meta.numel() * static_cast<int64_t>(item_size(meta.dtype)); }

class Copies {
 public:
  Copies(const Program& program, const ProgramTypes& types, size_t inputs) : types_(types), groups_(program) {
    for (Slot slot = 1; slot <= inputs; ++slot) use(slot).has_input = true;
    for (Slot slot : program.outputs()) use(slot).has_output = true;
    const auto& instructions = program.instructions();
    for (size_t i = 0; i < instructions.size(); ++i) {
      const Instruction& instruction = instructions[i];
      for (const Arg& arg : instruction.args) {
        for (Slot slot : names_in(arg)) use(slot).end_of_reads = i + 1;
      }
      const bool is_new = (instruction.flags & Instruction::kInto) == 0;
      for (Slot slot : instruction.results) {
        if (!is_new)
          use(slot).end_of_reads = i + 1;
        else if (has_fresh_results(*instruction.op))
          use(slot).bytes += bytes_of(types.of(slot));
      }
      for_each_written(instruction, [&](Slot slot) { use(slot).end_of_writes = i + 1; });
    }
  }

  // Whether instruction `i` is a copy that may be its source, which it becomes then.
  bool remove(const Instruction& copy, size_t i) {
    if (copy.op->id != op_id::kClone || (copy.flags & Instruction::kInto) != 0) return false;
    const Slot to = copy.results[0], from = current(copy.args[0].slot);
    const TensorMeta &made = types_.of(to), &source = types_.of(from);
    const bool is_same = made.dtype == source.dtype && made.device == source.device && made.sizes == source.sizes &&
                         made.strides == source.strides && made.offset == source.offset && !made.requires_grad &&
                         !source.requires_grad;
    const Use of_copy = use(to), of_source = use(from);
    const bool is_changed =
        of_source.end_of_writes > i || (of_copy.end_of_writes > i && of_source.end_of_reads > i + 1);
    if (!is_same || is_changed || of_source.has_input || (of_source.has_output && of_copy.has_output) ||
        (of_source.has_output && of_copy.end_of_writes > i) || of_source.bytes != bytes_of(source)) {
      return false;
    }
    Use both = of_source;
    both.add(of_copy);
    groups_.join(to, from);
    use(from) = both;
    same_[to] = from;
    return true;
  }

  // The name that has the value of this one now.
  Slot current(Slot slot) const {
    const auto found = same_.find(slot);
    return found == same_.end() ? slot : found->second;
  }

 private:
  Use& use(Slot slot) { return uses_[groups_.of(slot)]; }

  const ProgramTypes& types_;
  MemoryGroups groups_;
  absl::flat_hash_map<Slot, Use> uses_;   // by group
  absl::flat_hash_map<Slot, Slot> same_;  // of a removed copy: its source
};

}  // namespace

void remove_copies(Program* program, const ProgramTypes& types, size_t inputs) {
  Copies copies(*program, types, inputs);
  std::vector<Instruction> kept;
  kept.reserve(program->instructions().size());
  const auto current = [&](Slot slot) { return copies.current(slot); };
  for (size_t i = 0; i < program->instructions().size(); ++i) {
    Instruction instruction = program->instructions()[i];
    if (copies.remove(instruction, i)) continue;
    instruction.args = renamed_args(instruction.args, current, &program->memory());
    instruction.release = {};
    if ((instruction.flags & Instruction::kInto) != 0) {
      std::vector<Slot> targets;
      for (Slot slot : instruction.results) targets.push_back(current(slot));
      instruction.results = program->memory().copy(absl::MakeConstSpan(targets));
    }
    kept.push_back(instruction);
  }
  std::vector<Slot> outputs;
  for (Slot slot : program->outputs()) outputs.push_back(current(slot));
  program->mutable_instructions() = std::move(kept);
  program->set_outputs(outputs);
}

}  // namespace tt
