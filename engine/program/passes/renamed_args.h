// Arguments and instructions with other names.
#pragma once

#include "absl/functional/function_ref.h"
#include "engine/schema/program.h"

namespace tt {

// The largest name of the Program, which new names follow.
Slot last_name(const Program& program);

// A copy of the arguments in `memory` whose names are those that name_of returns; 0, for no tensor, stays.
Args renamed_args(Args args, absl::FunctionRef<Slot(Slot)> name_of, ProgramMemory* memory);

// Appends a copy of the instruction with other names, and without releases, to another Program, which then owns
// everything that it points to.
void append_renamed(Instruction instruction, absl::FunctionRef<Slot(Slot)> name_of, Program* to);

}  // namespace tt
