// Copies whose source and target are walked in different orders, tile by tile.
#pragma once

#include "kernels/cpu/space.h"

namespace tt::cpu {

// Copies `from` to `to` where both have one dtype and a transposition is worth it; false, and
// nothing done, where it is not. `space` is collapsed over the two.
bool transpose(const Space& space, const Access& from, const Access& to);

}  // namespace tt::cpu
