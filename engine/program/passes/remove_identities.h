// remove_identities: replaces the results of calls that do not change their argument by the argument.
#pragma once

#include "engine/schema/program.h"
#include "engine/schema/program_types.h"

namespace tt {

// Products with 1 whose result has the argument's dtype, sizes and layout. Keeps outputs of the Program, because a
// caller may write to them. `types` are those of `program`, whose names are defined once. Leaves a Program unchanged
// that writes in place (writes_in_place()). Call remove_unused() afterwards, which sets the releases.
void remove_identities(Program* program, const ProgramTypes& types);

}  // namespace tt
