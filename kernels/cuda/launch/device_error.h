// Error cells, in which a kernel reports invalid input (engine/session/async_errors.h).
//
//   DeviceErrorCell* cell = open_error_cell(queue, &index_out_of_range);
//   for_each(queue, n, [=] TT_DEVICE(int64_t i) {
//     int64_t at = index[i];
//     if (!in_range(at, size)) at = report_error(cell, at, dim, size);   // continues with 0
//     ...
//   });
#pragma once

#include <cstdint>

#include "engine/session/context.h"
#include "kernels/cuda/launch/atomic.h"

namespace tt::cuda {

inline DeviceErrorCell* open_error_cell(const Queue& queue, ErrorFormatter text) {
  return Context::current().async_errors().open(queue.cuda_stream(), text);
}

// Stores the first fault of a call; ignores later ones. Returns 0, a valid index for the kernel to continue with.
TT_DEVICE inline int64_t report_error(DeviceErrorCell* cell, int64_t value, int64_t dim, int64_t size) {
  if (test_and_set(&cell->raised)) {
    cell->values[0] = value;
    cell->values[1] = dim;
    cell->values[2] = size;
  }
  return 0;
}

// Stores the fault of a call that has the smallest `rank`, whatever the order of threads. `rank` must not be negative.
// `first` and `second` must be the same for all faults of the call. error_rank() returns the rank.
TT_DEVICE inline void report_ranked_error(DeviceErrorCell* cell, int64_t rank, int64_t first, int64_t second) {
  atomic_max(&cell->values[0], INT64_MAX - rank);  // cells are zero-initialized
  cell->values[1] = first;
  cell->values[2] = second;
  cell->raised = 1;
}
inline int64_t error_rank(const DeviceErrorCell& cell) { return INT64_MAX - cell.values[0]; }

// Negative indices count from the end; the caller wraps them.
TT_DEVICE inline bool in_range(int64_t index, int64_t size) { return index >= -size && index < size; }

// Returns an IndexError such as "index 7 is out of bounds for dimension 0 with size 5".
Error index_out_of_range(const DeviceErrorCell& cell);

}  // namespace tt::cuda
