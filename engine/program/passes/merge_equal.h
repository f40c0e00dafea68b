// merge_equal: common subexpression elimination.
//
// An instruction that repeats an earlier one with the same arguments is removed, and its results are those of the
// earlier one. Random operators are kept, and so is everything in a Program that writes in place: equal arguments could
// then have different values.
#pragma once

#include "engine/schema/program.h"

namespace tt {

// Rewrites a checked Program (check_program()) in place. The names are dropped as remove_unused() arranges, which has
// to run afterwards. Does not throw.
void merge_equal(Program* program);

}  // namespace tt
