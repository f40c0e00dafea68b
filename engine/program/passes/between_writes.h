// The instructions between two writes of a Program, as a Program of their own that passes understand.
#pragma once

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "engine/schema/meta.h"
#include "engine/schema/program.h"

namespace tt {

// A Program without writes, and the metadata of its inputs, which are its names 1, 2, ...
using PartPass = absl::FunctionRef<Program(Program part, absl::Span<const TensorMeta* const> metas)>;

// Returns the Program with each run of instructions that write nothing (writes_in_place()) as `pass` has changed it; of
// a Program without writes, what `pass` makes of it. The pass may rename everything but the inputs; outputs keep their
// order, and stay distinct results. `metas` are those of the Program's inputs. Throws Error if the rules reject an
// instruction. Releases are those of remove_unused().
Program map_between_writes(const Program& program, absl::Span<const TensorMeta* const> metas, bool grad_enabled,
                           PartPass pass);

}  // namespace tt
