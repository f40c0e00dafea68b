// keep_channels_last: results of two-dimensional convolutions stay channels last until a call needs another layout.
//
// oneDNN computes convolutions in this layout, so that without the pass every convolution copies its input and its
// result. Pointwise calls, norms and pools keep the layout that they are given; other calls and the caller get the
// layout that they would have without the pass. On the CPU, in float32, where no gradient is recorded. The values are
// the same, except that means of such results add their elements in another order, unless `exact`.
#pragma once

#include "engine/schema/program.h"
#include "engine/schema/program_types.h"

namespace tt {

// Returns the Program with the calls that change layouts, or an unchanged copy if no result of a convolution would be
// read as it is, or if the Program writes in place. `metas` are those of the inputs, `types` those of the values. Does
// not throw.
Program keep_channels_last(const Program& program, const ProgramTypes& types, absl::Span<const TensorMeta* const> metas,
                           bool exact);

}  // namespace tt
