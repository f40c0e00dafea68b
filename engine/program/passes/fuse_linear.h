// fuse_linear: a linear layer, the sum with another value and an activation become one call.
//
//     %4 = linear(%1, %2, %3)  %5 = gelu(%4)        %4 = linear(%1, %2, %3)  %6 = add(%5, %4)
//
// The operator fused_linear lets the product's kernel compute the rest before it stores the result. Sums keep the bits
// of single calls unless the product's kernel is another one; activations differ by rounding. On the CPU, in float32,
// for results that nothing else reads and of which no gradient is recorded.
#pragma once

#include "engine/schema/program.h"
#include "engine/schema/program_types.h"

namespace tt {

// Whether an instruction is a linear layer.
bool has_linear(const Program& program);

// Rewrites a checked Program in place, for inputs of these types, and removes what is unused then. Leaves Programs that
// write in place alone. Does not throw.
void fuse_linear(Program* program, const ProgramTypes& types);

}  // namespace tt
