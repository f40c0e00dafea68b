// for_each and for_each_group: launches of a function object for each index, or for each group of threads.
//
//   for_each(queue, out.numel(), [=] TT_DEVICE(int64_t i) { y[i] = x[i] + 1; });
//   for_each_group(queue, rows, columns, [=] TT_DEVICE(Group& group) {
//     float sum = 0;
//     for (int64_t i = group.rank(); i < columns; i += group.size()) sum += x[group.index() * columns + i];
//     sum = group.reduce(sum, Add());
//     if (group.rank() == 0) y[group.index()] = sum;
//   });
//
// Launches are asynchronous, in the queue's order. A body may read and write device memory and its captures by value.
// It must be correct for every group size, including one thread, and for any order of indices and groups. Writes of
// several threads to one address must use atomic.h. All threads of a group must call each sync() and each reduce(), or
// none. A thread may read memory that another thread of its group wrote only after a sync(); a reduce() exchanges only
// its value. On a simulated device, violations cause a device failure or a wrong value (simulated_group.h), except for
// a reduce() in place of a sync(). nvcc allows device lambdas neither inside generic lambdas nor in private members, so
// dispatch on dtypes to a function template that launches.
#pragma once

#ifdef __CUDACC__
#include "kernels/cuda/launch/launch_device.h"
#else
#include "kernels/cuda/launch/launch_host.h"
#endif

namespace tt::cuda {

// Operations for reduce() and scans. An operation must be commutative unless the caller states otherwise.
struct Add {
  template <typename T>
  TT_FUNCTION T operator()(T a, T b) const {
    return a + b;
  }
};
struct Multiply {
  template <typename T>
  TT_FUNCTION T operator()(T a, T b) const {
    return a * b;
  }
};

}  // namespace tt::cuda
