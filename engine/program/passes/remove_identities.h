// remove_identities: replaces the results of calls that do not change their argument by the argument.
//
//     x * 1   x / 1   x - 0   x + -0.0   neg(neg(x))   t(t(x))   permute(permute(x, ...), ...)   where(c, x, x)
//     reshape(x, x.sizes)   expand(x, x.sizes)   contiguous(x) of a contiguous x   clone(x)   dropout(x, 0)
//
// Only where every bit stays: x + 0 makes 0.0 of -0.0, unless x is an integer.
#pragma once

#include "engine/schema/program.h"
#include "engine/schema/program_types.h"

namespace tt {

// Replaces results that have the dtype, sizes, layout and values of another one; a view with the geometry of an earlier
// view of the same storage is one. Lets reshapes of reshapes read the first one's argument. Keeps outputs of the
// Program, because a caller may write to them. If `keeps_errors`, keeps calls with another tensor, such as the
// condition of where(c, x, x), whose error would be lost. `types` are those of `program`, whose names are defined once.
// Leaves a Program unchanged that writes in place (writes_in_place()). Call remove_unused() afterwards, which sets the
// releases.
void remove_identities(Program* program, const ProgramTypes& types, bool keeps_errors = false);

}  // namespace tt
