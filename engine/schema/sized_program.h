// with_sizes(): a Program for inputs of given sizes, from one whose integers depend on them.
#pragma once

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "engine/schema/meta.h"
#include "engine/schema/program.h"
#include "engine/schema/program_types.h"

namespace tt {

struct SizedProgram {
  Program program;  // without sizes()
  ProgramTypes types;
};

// Called with the number of instructions that `types` describes: before each instruction, and at the end.
using VisitTypes = absl::FunctionRef<void(size_t instruction, const ProgramTypes& types)>;

// Replaces the arguments that program.sizes() describes. Throws Error of the first instruction whose arguments or
// expressions are invalid for these inputs, and what `visit` throws.
SizedProgram with_sizes(
    const Program& program, absl::Span<const TensorMeta* const> inputs, bool grad_enabled,
    VisitTypes visit = [](size_t, const ProgramTypes&) {});

// Sets the arguments of `instruction` that `sizes` describe to their values for the sizes in `types`. The arguments are
// copied to `memory`. Throws Error (ValueError) if an expression uses a name that `types` does not have, a dimension
// that the value does not have, or an argument that is not an integer.
void set_sizes(absl::Span<const SizeArgument> sizes, const ProgramTypes& types, ProgramMemory& memory,
               Instruction* instruction);

}  // namespace tt
