// remove_unused: dead code elimination, and the times at which names are dropped.
//
// An instruction whose results nothing reads is removed, unless it draws random numbers, whose later draws would then
// differ, writes in place, or has no results and so acts on the session. Every name is dropped before the instruction
// after its last use, so that its memory is reused.
#pragma once

#include "engine/schema/program.h"

namespace tt {

// Rewrites a checked Program (check_program()) in place. Does not throw.
void remove_unused(Program* program);

}  // namespace tt
