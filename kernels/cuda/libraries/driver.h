// driver_function: what of the driver's library cudart does not wrap.
#pragma once

#include <cuda_runtime.h>

#include "engine/schema/error.h"

namespace tt::cuda {

// The driver's library is opened by cudart. Throws Error where it has no such function.
template <typename Function>
Function driver_function(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result;
  const cudaError_t code = cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result);
  check(code == cudaSuccess && found != nullptr && result == cudaDriverEntryPointSuccess, "the driver has no ", name);
  return reinterpret_cast<Function>(found);
}

}  // namespace tt::cuda
