// driver_function: looks up functions of the driver that cudart does not wrap.
#pragma once

#include <cuda_runtime.h>

#include "engine/schema/error.h"

namespace tt::cuda {

// Returns a function of the driver's library, which cudart opens. Throws Error if the driver has no such function.
template <typename Function>
Function driver_function(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result;
  const cudaError_t code = cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result);
  check(code == cudaSuccess && found != nullptr && result == cudaDriverEntryPointSuccess, "the driver has no function ",
        name);
  return reinterpret_cast<Function>(found);
}

}  // namespace tt::cuda
