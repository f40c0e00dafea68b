// functionalise: in-place writes become values, so that the other passes may move and merge calls.
//
// `relu_(x)` of a result x of the Program becomes a call whose result is a new name, which later instructions read in
// place of x. A write stays one if other names may share x's memory (views of x, and what x is a view of), if x is an
// input, or if the result of the call alone would have other metadata than x.
#pragma once

#include "engine/schema/program.h"
#include "engine/schema/program_types.h"

namespace tt {

// Rewrites a checked Program in place, for inputs of these types. Call remove_unused() afterwards, which sets the
// releases. Does not throw.
void functionalise(Program* program, const ProgramTypes& types, size_t inputs);

}  // namespace tt
