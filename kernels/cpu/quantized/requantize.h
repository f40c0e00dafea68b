// Requantization: sums of products of 8-bit integers become 8-bit integers with another scale, with the bits of the
// operator `requantize`.
#pragma once

#include <cstdint>

#include "engine/tensor/tensor.h"
#include "kernels/cpu/quantized/int8_dot.h"

namespace tt::cpu {

// The parameters of a result whose columns (output channels) have scales and biases.
class Requantization {
 public:
  // `scale` and `bias` have one element or `columns` many; `bias` may be undefined. Throws Error (RuntimeError) for
  // another number of elements.
  Requantization(const Tensor& scale, const Tensor& bias, int64_t columns, double output_scale,
                 int64_t output_zero_point, int64_t quant_min, int64_t quant_max);

  // Columns [first, first + n) of a row: sums[j] - point * weights[j] - points[j] * centered, with the result's scale.
  // Writes the bits of int8 or uint8. All pointers are those of the first column.
  void row(int64_t first, int64_t n, const int32_t* sums, const int32_t* weights, int32_t point, int32_t centered,
           const int32_t* points, uint8_t* to) const;

 private:
  Tensor shifts_, factors_;  // per column
  float zero_point_, low_, high_;
};

}  // namespace tt::cpu
