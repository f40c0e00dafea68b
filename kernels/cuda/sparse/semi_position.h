// Positions of the values of 2:4 matrices.
#pragma once

#include <cstdint>

#include "kernels/cuda/launch/launch.h"

namespace tt::cuda {

// The position in its group of four of value i of a matrix. The metadata has two bits per value, and 0 to 3 are all
// valid.
TT_DEVICE inline int64_t semi_position(const int16_t* meta, int64_t i) {
  return (static_cast<uint16_t>(meta[i / 8]) >> (i % 8 * 2)) & 3;
}

}  // namespace tt::cuda
