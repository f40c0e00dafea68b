// Which names of a Program may share memory.
#pragma once

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "engine/schema/op.h"
#include "engine/schema/program.h"

namespace tt {

// Whether no result of the operator shares memory with an argument. False for views, and for composites of which the
// declaration does not show it.
bool has_fresh_results(const Op& op);

// The names that may share memory with an output, to which the caller or a later instruction may write. A pass must not
// replace one of them by another, nor by an input.
absl::flat_hash_set<Slot> names_shared_with_outputs(const Program& program);

// Calls visit(name) for every value that the instruction may write in place.
void for_each_written(const Instruction& instruction, absl::FunctionRef<void(Slot)> visit);

// Divides the names of a Program into groups: names of different groups share no memory at any time of a run, if its
// inputs do not. Inputs of an operator whose results may be views of one of several are one group.
class MemoryGroups {
 public:
  explicit MemoryGroups(const Program& program);
  // The group, as one of its names.
  Slot of(Slot slot) const;
  // Makes two groups one.
  void join(Slot a, Slot b);

 private:
  mutable absl::flat_hash_map<Slot, Slot> parents_;  // a forest; roots and names without an entry are groups
};

}  // namespace tt
