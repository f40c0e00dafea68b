// fuse_pointwise: replaces consecutive dependent pointwise instructions by one pointwise_chain.
//
// `relu((a + b) * 2)` arrives as three instructions and the releases of two intermediate results. An intermediate
// result needs no name, and often no memory, if it is released within the Program and only the chain reads it before
// that. pointwise_chain (engine/composites/pointwise_chain.h) computes all steps block by block if their tensors allow
// it, and one by one otherwise.
#pragma once

#include "engine/program/slot_table.h"
#include "engine/schema/program.h"

namespace tt {

// Rewrites `program`, which is about to run over `slots`, in place. `reads` are in ascending order; no chain extends
// over one, and a result that it reads is not removed. Leaves chains of tensors that are small according
// to `slots`, and anything invalid, unchanged: the executor reports errors as it would without this pass. `autocasts`:
// the session uses autocast, so that operators with a policy are executed alone. `is_observed`: the session records a
// profile, in which reductions have calls and memory of their own. Does not throw.
void fuse_pointwise(Program* program, const SlotTable& slots, absl::Span<const ReadPoint> reads = {},
                    bool autocasts = false, bool is_observed = false);

}  // namespace tt
