// Launches: a function object run for each index, or for each group of threads.
//
//   for_each(queue, out.numel(), [=] TT_DEVICE(int64_t i) { y[i] = x[i] + 1; });
//   for_each_group(queue, rows, columns, [=] TT_DEVICE(Group& group) {
//     float sum = 0;
//     for (int64_t i = group.rank(); i < columns; i += group.size()) sum += x[group.index() * columns + i];
//     sum = group.reduce(sum, Add());
//     if (group.rank() == 0) y[group.index()] = sum;
//   });
//
// Nothing waits: the work happens in the queue's order. A body reads and writes memory of the device and what it
// captured by value. It must be right for every size of group, one thread included, and for indices and groups in any
// order; writes of several threads to one place go through atomic.h. All threads of a group come to each sync() and
// each reduce(), or none does. What one of them writes the others may read after a sync() and not before: a reduce()
// hands over its value and no more. Simulated devices show what breaks that as a failure of the device or as a wrong
// value (team.h), but for a reduce() that a sync() should be. nvcc allows such lambdas neither inside generic lambdas
// nor in private members: dispatch on dtypes to a function template that launches.
#pragma once

#ifdef __CUDACC__
#include "kernels/cuda/launch/launch_device.h"
#else
#include "kernels/cuda/launch/launch_host.h"
#endif

namespace tt::cuda {

// For reduce() and scans. Commutative, except where a caller says else.
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
