// Tiled copies between tensors whose contiguous dimensions differ.
#pragma once

#include <cstdint>

#include "kernels/cpu/iteration/space.h"

namespace tt::cpu {

// Copies `from` to `to` if both have the same dtype and a tiled copy is faster; otherwise returns false without
// copying. `space` must be collapsed for these two operands.
bool transpose(const Space& space, const Access& from, const Access& to);

// The contiguous dimensions of the target and of the source.
struct Plane {
  int64_t rows, columns;        // columns: contiguous in the target; rows: contiguous in the source
  int64_t from_column, to_row;  // strides between source columns and target rows, in elements
};
// to[r * p.to_row + c] = from[c * p.from_column + r], in registers. Single-threaded; for elements of four or eight
// bytes.
void transpose_plane(const uint32_t* from, uint32_t* to, const Plane& p);
void transpose_plane(const uint64_t* from, uint64_t* to, const Plane& p);

}  // namespace tt::cpu
