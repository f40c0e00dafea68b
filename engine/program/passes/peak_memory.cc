#include "engine/program/passes/peak_memory.h"

#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "engine/program/chain_types.h"
#include "engine/program/passes/shared_memory.h"
#include "engine/program/passes/writes.h"
#include "engine/schema/program_types.h"

namespace tt {
namespace {

// Memory of one or more names.
class Values {
 public:
  void add(Slot slot, int64_t bytes) {
    roots_[slot] = slot;
    memory_[slot] = {bytes, 1};
    bytes_ += bytes;
  }
  void add_shared(Slot slot, Slot with) {
    const auto found = roots_.find(with);
    if (found == roots_.end()) return;  // an input
    const Slot root = found->second;
    roots_[slot] = root;
    ++memory_.at(root).names;
  }
  void drop(Slot slot) {
    const auto root = roots_.find(slot);
    if (root == roots_.end()) return;
    Memory& memory = memory_.at(root->second);
    if (--memory.names == 0) bytes_ -= memory.bytes;
    roots_.erase(root);
  }
  int64_t bytes() const { return bytes_; }

 private:
  struct Memory {
    int64_t bytes;
    int names;  // that are not dropped
  };
  absl::flat_hash_map<Slot, Slot> roots_;  // by name: the name that the memory was computed for
  absl::flat_hash_map<Slot, Memory> memory_;
  int64_t bytes_ = 0;
};

// The first tensor among the arguments; 0 if there is none.
Slot first_name(const Instruction& instruction) {
  for (const Arg& arg : instruction.args) {
    for (Slot slot : names_in(arg)) {
      if (slot != 0) return slot;
    }
  }
  return 0;
}

}  // namespace

int64_t peak_bytes(const Program& program, absl::Span<const TensorMeta* const> inputs, bool grad_enabled) {
  const ProgramTypes types(program, inputs, grad_enabled, infer_with_chains);
  Values values;
  int64_t peak = 0;
  for (const Instruction& instruction : program.instructions()) {
    for (Slot slot : instruction.release) values.drop(slot);
    if (writes_in_place(instruction)) continue;
    const bool is_fresh = has_fresh_results(*instruction.op);
    for (Slot slot : instruction.results) {
      const TensorMeta& meta = types.of(slot);
      if (is_fresh)
        values.add(slot, meta.numel() * static_cast<int64_t>(item_size(meta.dtype)));
      else
        values.add_shared(slot, first_name(instruction));
    }
    peak = std::max(peak, values.bytes());
  }
  return peak;
}

int64_t stored_bytes(const Program& program, absl::Span<const TensorMeta* const> inputs, bool grad_enabled) {
  const ProgramTypes types(program, inputs, grad_enabled, infer_with_chains);
  int64_t bytes = 0;
  for (const Instruction& instruction : program.instructions()) {
    if (writes_in_place(instruction) || !has_fresh_results(*instruction.op)) continue;
    for (Slot slot : instruction.results) {
      const TensorMeta& meta = types.of(slot);
      bytes += meta.numel() * static_cast<int64_t>(item_size(meta.dtype));
    }
  }
  return bytes;
}

}  // namespace tt
