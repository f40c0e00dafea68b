// Half precisions to and from float: one instruction each on a GPU, engine/rules/half.h on the host.
#pragma once

#include <type_traits>

#include "engine/rules/half.h"
#include "kernels/cuda/launch/launch.h"

namespace tt::cuda {

#ifdef __CUDA_ARCH__

__device__ __forceinline__ float widen(Half value) {
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value.bits));
  return result;
}
__device__ __forceinline__ float widen(BFloat16 value) {
  return __uint_as_float(static_cast<uint32_t>(value.bits) << 16);
}
template <typename To>
__device__ __forceinline__ To narrow(float value) {
  To result;
  if constexpr (std::is_same_v<To, Half>) {
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
  } else {
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
  }
  return result;
}

#else

template <typename From>
TT_FUNCTION float widen(From value) {
  return static_cast<float>(value);
}
template <typename To>
TT_FUNCTION To narrow(float value) {
  return To(value);
}

#endif

}  // namespace tt::cuda
