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

// The only element of `zero_point`, as an int32 tensor. If it is not an integer of `dtype` (uint8 or int8), the call's
// results become the CPU's error, and the tensor has 0.
Tensor zero_point_for(const Tensor& zero_point, DType dtype);
// `count` int32 numbers or one. If an element has more than 32 bits, the call's results become the CPU's error. Throws
// Error (RuntimeError) for another number of elements, or for complex numbers.
Tensor weight_zero_points(const Tensor& t, int64_t count);
// `count` float32 numbers or one; undefined if `t` is. Throws as weight_zero_points().
Tensor column_numbers(const Tensor& t, int64_t count, const char* name);

}  // namespace tt::cuda
