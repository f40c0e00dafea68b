// Operands of products of 8-bit integers in device memory: zero points, and numbers per output column.
#pragma once

#include <cstdint>

#include "engine/tensor/tensor.h"
#include "kernels/cuda/launch/launch.h"

namespace tt::cuda {

// One number per column, or the same for all columns. `data` may be null. Captured by value.
template <typename T>
struct PerColumn {
  const T* data;
  int64_t step;

  TT_FUNCTION T at(int64_t column) const { return data[column * step]; }
};

template <typename T>
PerColumn<T> per_column(const Tensor& t) {
  if (!t) return {nullptr, 0};
  return {t.data_as<T>(), t.numel() == 1 ? 0 : 1};
}

// Returns four bytes at any address, of which those from `n` on are 0 and are not read.
TT_DEVICE inline uint32_t load_word(const uint8_t* from, int64_t n) {
  if (n >= 4 && reinterpret_cast<uintptr_t>(from) % 4 == 0) return *reinterpret_cast<const uint32_t*>(from);
  uint32_t word = 0;
  for (int e = 0; e < 4 && e < n; ++e) word |= uint32_t{from[e]} << (8 * e);
  return word;
}

// The only element of `zero_point`, as an int32 tensor. If it is not an integer of `dtype` (uint8 or int8), the call's
// results become the CPU's error, and the tensor has 0.
Tensor zero_point_for(const Tensor& zero_point, DType dtype);
// `count` int32 numbers or one. If an element has more than 32 bits, the call's results become the CPU's error. Throws
// Error (RuntimeError) for another number of elements, or for complex numbers.
Tensor weight_zero_points(const Tensor& t, int64_t count);
// `count` float32 numbers or one; undefined if `t` is. Throws as weight_zero_points().
Tensor column_numbers(const Tensor& t, int64_t count, const char* name);

}  // namespace tt::cuda
