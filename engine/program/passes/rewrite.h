// rewrite: replaces what a program writes out by the operator that computes it in one pass.
//
// Softmax, RMS and layer norm, GELU, SiLU and attention, in the forms that programs contain. The operator's values
// differ from those of the single calls by rounding, so a Program that must keep the bits of single calls is not
// rewritten. Only float32 and float64 are: single calls in a narrower type round every intermediate result.
#pragma once

#include "engine/schema/program.h"
#include "engine/schema/program_types.h"

namespace tt {

// Rewrites a checked Program in place, for inputs of these types, and removes what is unused then. Requires that the
// Program does not write in place (writes_in_place()), and has nothing unused. Returns the number of operators written.
// Takes time in proportion to the instructions, and throws Cancelled.
size_t rewrite(Program* program, const ProgramTypes& types);

}  // namespace tt
