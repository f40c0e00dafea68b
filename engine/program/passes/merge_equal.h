// merge_equal: common subexpression elimination.
//
// An instruction that repeats an earlier one with the same arguments is removed, and its results are those of the
// earlier one. Random operators are kept; so are values that a backward pass of the Program names, because it may
// return the gradient of either; and so is everything in a Program that writes in place: equal arguments could then
// have different values.
#pragma once

#include "engine/schema/program.h"
#include "engine/schema/program_types.h"

namespace tt {

// Rewrites a checked Program (check_program()) in place. The names are dropped as remove_unused() arranges, which has
// to run afterwards. `types` are those of its values. Unless `recorded`, keeps calls that the tape records: two
// backward passes may differentiate them, and the first one frees what they have saved. Does not throw.
void merge_equal(Program* program, const ProgramTypes& types, bool recorded);

}  // namespace tt
