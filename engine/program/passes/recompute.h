// Recompute: a pass for activation checkpointing in a Program of forward and backward.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/schema/program.h"

namespace tt {

// Computes again, before the backward part reads them, the results of calls that the client has marked
// (Instruction::kRecompute), instead of keeping them. A region is a run of calls with the same mark. Its results that
// later calls of forward read, or the caller, are kept; so are drawn random numbers, and with them their bits.
// `is_backward` says of each instruction whether a backward pass has called it. Requires a Program without in-place
// writes. The bits do not change. The calls that compute something again have no mark, so that merge_equal does not
// make them one with the first ones.
void recompute(std::vector<bool> is_backward, Program* program);

// Removes the marks, of which no later pass has a use.
void remove_marks(Program* program);

}  // namespace tt
