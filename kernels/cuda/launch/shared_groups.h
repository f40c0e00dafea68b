// for_each_shared_group: groups (launch.h) with shared memory.
//
//   for_each_shared_group<kBytes>(queue, groups, work, f);   // calls f(group, memory) in all threads of each group
//
// for_each_shared_group<kBytes, kThreads>() launches at most kThreads threads per group, so that each may use more
// registers. `memory` points to kBytes bytes, aligned to 16. A thread may read bytes that another thread wrote only
// after group.sync(). `f` is an object of a named type, not a lambda.
#pragma once

#include <cstddef>
#include <cstring>
#include <utility>

#include "kernels/cuda/launch/launch.h"

namespace tt::cuda {

#ifdef __CUDACC__

template <size_t kBytes, int kThreads, typename F>
__global__ void __launch_bounds__(kThreads) run_shared_groups(int64_t groups, F f) {
  __shared__ uint64_t scratch[kValueWords * kWarp];
  __shared__ alignas(16) std::byte memory[kBytes];
  for (int64_t i = blockIdx.x; i < groups; i += gridDim.x) {
    Group group(i, scratch);
    f(group, memory);
    __syncthreads();  // the next group reuses `scratch` and `memory`
  }
}

template <size_t kBytes, int kThreads = 1024, typename F>
void for_each_shared_group(const Queue& queue, int64_t groups, int64_t work, F f) {
  if (groups <= 0) return;
  launch(queue, &run_shared_groups<kBytes, kThreads, F>, std::min(groups, kMaxBlocks),
         std::min<int64_t>(threads_for(work), kThreads), groups, f);
}

#else

template <size_t kBytes, typename F>
void run_shared_groups(int64_t groups, F f) {
  alignas(16) std::byte memory[kBytes];
  int64_t last = -1;
  SimulatedGroup::run(groups, typeid(F), [&](SimulatedGroup& simulated_group, int64_t index, int rank) {
    if (std::exchange(last, index) != index) std::memset(memory, 0xa5, kBytes);  // the initial contents are undefined
    Group group(simulated_group, index, rank);
    f(group, memory);
  });
}

template <size_t kBytes, int kThreads = 1024, typename F>
void for_each_shared_group(const Queue& queue, int64_t groups, int64_t, F f) {
  if (groups > 0) launch(queue, &run_shared_groups<kBytes, F>, groups, f);
}

#endif

}  // namespace tt::cuda
