// fuse_pointwise: pointwise instructions that follow from each other become one pointwise_chain.
//
// `relu((a + b) * 2)` arrives as three instructions and the releases of two intermediate results. An intermediate
// result that is released within the Program, and is read until then by the chain alone, needs no name and often no
// memory: pointwise_chain (engine/composites/pointwise_chain.h) computes all steps block by block where their tensors
// allow it, and one by one where they do not.
#pragma once

#include "engine/program/program.h"
#include "engine/program/slot_table.h"

namespace tt {

// Rewrites `program`, which is about to run over `slots`, in place. Chains of tensors that `slots` shows to be small
// are left alone, and so is everything that is invalid: the executor reports that as it would have. Does not throw.
void fuse_pointwise(Program* program, const SlotTable& slots);

}  // namespace tt
