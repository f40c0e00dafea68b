// Requantization: sums of products of 8-bit integers become 8-bit integers with another scale, with the bits of the
// operator `requantize`.
#pragma once

#include "kernels/common/math/scalar_math.h"
#include "kernels/cuda/quantized/operands.h"

namespace tt::cuda {

// The parameters of a result whose columns (output channels) have scales and perhaps biases. Captured by value.
struct Requantization {
  PerColumn<float> scale, bias;
  float output_scale, zero_point, low, high;

  // Returns the bits of int8 or uint8.
  TT_DEVICE uint8_t operator()(int64_t column, int32_t sum) const {
    const float s = scale.at(column);
    const float shifted = static_cast<float>(sum) + (bias.data ? bias.at(column) / s : 0.0f);
    const float moved = math::rint(shifted * (s / output_scale)) + zero_point;
    const float below = moved < high ? moved : high;  // the limit, if it is NaN
    return static_cast<uint8_t>(static_cast<int32_t>(below > low ? below : low));
  }
};

}  // namespace tt::cuda
