// CUPTI of simulated devices: a library with the functions and records of the real one (libcupti.so), and the hook by
// which the simulated runtime reports its work.
//
// TELETENSOR_SIMULATED_CUPTI=refused makes profiling require privileges; =old gives the library an unknown version.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace tt::cuda {

struct SimulatedWork {
  enum Kind { kKernel, kCopy, kFill } kind = kKernel;
  uint64_t bytes = 0;
  int device = 0;
  uint32_t stream = 0;
};

// Reports the call that issues `work`, and returns work that also reports its execution. Returns `work` itself if
// nothing is traced.
std::function<void()> traced(std::function<void()> work, const SimulatedWork& what);

}  // namespace tt::cuda
