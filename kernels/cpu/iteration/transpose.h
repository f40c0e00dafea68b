// Copies whose source and target are walked in different orders, tile by tile.
#pragma once

#include <cstdint>

#include "kernels/cpu/iteration/space.h"

namespace tt::cpu {

// Copies `from` to `to` where both have one dtype and a transposition is worth it; false, and
// nothing done, where it is not. `space` is collapsed over the two.
bool transpose(const Space& space, const Access& from, const Access& to);

// Two dimensions out of a space: the one that the target is straight along, and the source's.
struct Plane {
  int64_t rows, columns;        // columns: consecutive in the target; rows: consecutive in the source
  int64_t from_column, to_row;  // strides across them, in elements
};
// to[r * p.to_row + c] = from[c * p.from_column + r], in registers. For one thread; elements of four and eight bytes.
void transpose_plane(const uint32_t* from, uint32_t* to, const Plane& p);
void transpose_plane(const uint64_t* from, uint64_t* to, const Plane& p);

}  // namespace tt::cpu
