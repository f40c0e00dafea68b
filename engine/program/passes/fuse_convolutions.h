// fuse_convolutions: a convolution, the norm of inference, a sum and an activation become one call.
//
//     %5 = conv2d(%1, %2, %3, ...)  %6 = batch_norm(%5, ...)  %7 = add(%6, %4)  %8 = relu(%7)
//
// The operator fused_convolution computes the rest while the convolution's result is in the caches, with the bits of
// the single calls. On the CPU, in float32 and float64, where no gradient is recorded.
#pragma once

#include "engine/schema/program.h"
#include "engine/schema/program_types.h"

namespace tt {

// Whether an instruction is a convolution other than a transposed or a fused one.
bool has_convolution(const Program& program);

// Rewrites a checked Program in place, for inputs of these types, and removes what is unused then. Leaves Programs that
// write in place alone. Does not throw.
void fuse_convolutions(Program* program, const ProgramTypes& types);

}  // namespace tt
