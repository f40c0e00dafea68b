// Which names of a Program may share memory.
#pragma once

#include "absl/container/flat_hash_set.h"
#include "engine/schema/op.h"
#include "engine/schema/program.h"

namespace tt {

// Whether no result of the operator shares memory with an argument. False for views, and for composites of which the
// declaration does not show it.
bool has_fresh_results(const Op& op);

// The names that may share memory with an output, to which the caller or a later instruction may write. A pass must not
// replace one of them by another, nor by an input.
absl::flat_hash_set<Slot> names_shared_with_outputs(const Program& program);

}  // namespace tt
