// Conversions between 16-bit floats and float. On the host, they are the functions of engine/schema/half.h. On a GPU, a
// conversion is one instruction. One instruction can also narrow two floats to one word, the first in the lower half.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "engine/schema/half.h"
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
template <typename To>
__device__ __forceinline__ uint32_t narrow_pair(float low, float high) {
  uint32_t pair;
  if constexpr (std::is_same_v<To, Half>) {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  } else {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  }
  return pair;
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
template <typename To>
TT_FUNCTION uint32_t narrow_pair(float low, float high) {
  return narrow<To>(low).bits | static_cast<uint32_t>(narrow<To>(high).bits) << 16;
}

#endif

template <typename From>
TT_FUNCTION float widen_low(uint32_t pair) {
  return widen(std::bit_cast<From>(static_cast<uint16_t>(pair)));
}
template <typename From>
TT_FUNCTION float widen_high(uint32_t pair) {
  if constexpr (std::is_same_v<From, BFloat16>) {
    return std::bit_cast<float>(pair & 0xffff0000u);  // one instruction instead of two shifts by 16
  } else {
    return widen(std::bit_cast<From>(static_cast<uint16_t>(pair >> 16)));
  }
}

}  // namespace tt::cuda
