// dot4: the scalar product of four pairs of signed 8-bit integers in two words. One instruction on a GPU.
#pragma once

#include <cstdint>

#include "kernels/cuda/launch/launch.h"

namespace tt::cuda {

#ifdef __CUDA_ARCH__

__device__ __forceinline__ uint32_t dot4(uint32_t a, uint32_t b, uint32_t sum) {
  return static_cast<uint32_t>(__dp4a(static_cast<int>(a), static_cast<int>(b), static_cast<int>(sum)));
}

#else

TT_FUNCTION uint32_t dot4(uint32_t a, uint32_t b, uint32_t sum) {
  for (int byte = 0; byte < 32; byte += 8) {
    const int32_t x = static_cast<int8_t>(a >> byte), y = static_cast<int8_t>(b >> byte);
    sum += static_cast<uint32_t>(x * y);  // wraps around
  }
  return sum;
}

#endif

}  // namespace tt::cuda
