// Converts blocks of elements between memory and four types: float, double, int64 or bytes.
//
// Used by kernels that are too rare for a loop per dtype. They compute on blocks of one of these types, which fit the
// L1 cache.
#pragma once

#include <cstdint>
#include <type_traits>

#include "engine/schema/dtype.h"
#include "engine/schema/half.h"

namespace tt::cpu {

// dst[i] = src[i * stride], converted, for i < n. A uint8_t block of a dtype other than uint8 or bool holds 1 for
// nonzero elements and 0 for zeros.
void load_block(float* dst, const void* src, DType dtype, int64_t stride, int64_t n);
void load_block(double* dst, const void* src, DType dtype, int64_t stride, int64_t n);
void load_block(int64_t* dst, const void* src, DType dtype, int64_t stride, int64_t n);
void load_block(uint8_t* dst, const void* src, DType dtype, int64_t stride, int64_t n);
void load_block(BFloat16* dst, const void* src, DType dtype, int64_t stride, int64_t n);  // from bfloat16 only

// dst[i * stride] = src[i], converted as PyTorch does.
void store_block(void* dst, DType dtype, int64_t stride, const float* src, int64_t n);
void store_block(void* dst, DType dtype, int64_t stride, const double* src, int64_t n);
void store_block(void* dst, DType dtype, int64_t stride, const int64_t* src, int64_t n);
void store_block(void* dst, DType dtype, int64_t stride, const uint8_t* src, int64_t n);

// Whether elements of `dtype` are stored as T, so that no conversion is needed.
template <typename T>
constexpr bool is_stored_as(DType dtype) {
  if constexpr (sizeof(T) == 1) return dtype == DType::kUInt8;
  if constexpr (std::is_same_v<T, float>) return dtype == DType::kFloat32;
  if constexpr (std::is_same_v<T, BFloat16>) return dtype == DType::kBFloat16;
  if constexpr (std::is_same_v<T, double>) return dtype == DType::kFloat64;
  return std::is_same_v<T, int64_t> && dtype == DType::kInt64;
}

}  // namespace tt::cpu
