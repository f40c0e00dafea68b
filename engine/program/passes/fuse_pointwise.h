// fuse_pointwise: runs pointwise instructions that follow from each other as one loop.
//
// `relu((a + b) * 2)` arrives as three instructions and the releases of two intermediate results. A
// result that is released within the Program, and read until then by pointwise operators of the
// same shape alone, need not exist: the backend's chain kernel computes all of them block by block.
#pragma once

#include <cstddef>

#include "engine/program/program.h"
#include "engine/program/slot_table.h"

namespace tt {

// Runs the longest chain that begins with instruction `first`, and does what its instructions do to
// the slot table. Gives how many instructions that were; 0 where none was run, be it that none
// follows from `first`, that fusing does not pay, or that something is wrong with one of them (which
// shows when it is run by itself). Does not throw.
size_t fuse_pointwise(const Program& program, size_t first, SlotTable& slots);

}  // namespace tt
