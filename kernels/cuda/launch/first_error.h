// Errors that one group of threads finds among many elements, of which the first one is reported, as on the CPU.
#pragma once

#include "kernels/cuda/launch/device_error.h"

namespace tt::cuda {

struct Least {
  TT_FUNCTION int64_t operator()(int64_t a, int64_t b) const { return b < a ? b : a; }
};

// Returns to all threads of the group the smallest i below n for which is_bad(i), or n. All threads must call this.
template <typename IsBad>
TT_DEVICE int64_t first_bad(Group& group, int64_t n, IsBad is_bad) {
  int64_t first = n;
  for (int64_t i = group.rank(); i < n && first == n; i += group.size()) first = is_bad(i) ? i : n;
  return group.reduce(first, Least());
}

// Stores an error. Must be called by at most one thread of the launch.
TT_DEVICE inline void store_error(DeviceErrorCell* cell, int32_t detail, int64_t a, int64_t b, int64_t c) {
  cell->detail = detail;
  cell->values[0] = a;
  cell->values[1] = b;
  cell->values[2] = c;
  cell->raised = 1;
}

}  // namespace tt::cuda
