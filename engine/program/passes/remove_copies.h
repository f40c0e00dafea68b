// remove_copies: a value that is a copy of another one becomes that value.
//
// A backward pass in a Program copies gradients that are views, or that it cannot prove to be used once, because the
// results of a Program share no memory. Where the Program shows that they do not, the copy is superfluous.
#pragma once

#include "engine/schema/program.h"
#include "engine/schema/program_types.h"

namespace tt {

// Rewrites a checked Program in place, for inputs of these types; the Program may write in place. Requires that inputs
// share no memory if it does. A copy stays if its source may share memory with an input, if both may be in the memory
// of an output, if a later write to one of them would change the other, if the metadata differ, if the source is part
// of a larger storage, or if the tape records one of them. Call remove_unused() afterwards, which sets the releases.
// Does not throw.
void remove_copies(Program* program, const ProgramTypes& types, size_t inputs);

}  // namespace tt
