// fuse_regions: replaces groups of pointwise instructions of a Program, and perhaps a reduction, by one pointwise_chain
// each.
//
// Unlike fuse_pointwise, which reads frames as they arrive, it sees the whole Program: the instructions of a group need
// not be neighbours, and results that others read are stored by the group's loop. Keeps the bits of single calls. The
// order of draws of random numbers stays the same.
#pragma once

#include "engine/schema/program.h"
#include "engine/schema/program_types.h"

namespace tt {

// `types` are those of `program`, whose names are defined once. Leaves a Program unchanged that writes in place
// (writes_in_place()), and values that are small or that the tape records. Call remove_unused() afterwards, which sets
// the releases. Throws Cancelled.
void fuse_regions(Program* program, const ProgramTypes& types);

}  // namespace tt
