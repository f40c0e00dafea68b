// view_kernel: the kernel of every operator declared `view: true`, on every backend.
#pragma once

#include "engine/dispatch/dispatcher.h"

namespace tt {

// Results alias the first argument as computed by the shape rule. If that is impossible (reshape of transposed memory),
// the single result is a contiguous copy.
void view_kernel(Call& call);

}  // namespace tt
