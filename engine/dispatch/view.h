// view_kernel: what every operator declared `view: true` does, on every backend.
#pragma once

#include "engine/dispatch/dispatcher.h"

namespace tt {

// Results alias the first argument as the shape rule said. Where that cannot be (reshape of
// transposed memory) the one result is a contiguous copy.
void view_kernel(Call& call);

}  // namespace tt
