#include "kernels/cpu/quantized/requantize.h"

#include <cmath>

#include "kernels/cpu/loops/clones.h"
#include "kernels/cpu/quantized/int8_operands.h"

namespace tt::cpu {
namespace {

struct Limits {
  float zero_point, low, high;
};

// What is added to a sum of each column, and the factor of the result.
TT_CLONES void divide(int64_t n, const float* scales, const float* bias, float divisor, float* __restrict shifts,
                      float* __restrict factors) {
  for (int64_t j = 0; j < n; ++j) factors[j] = scales[j] / divisor;
  if (bias) {
    for (int64_t j = 0; j < n; ++j) shifts[j] = bias[j] / scales[j];
  } else {
    for (int64_t j = 0; j < n; ++j) shifts[j] = 0;
  }
}

TT_CLONES void requantize_row(int64_t n, const int32_t* __restrict sums, const int32_t* __restrict weights,
                              int32_t point, int32_t centered, const int32_t* __restrict points,
                              const float* __restrict shifts, const float* __restrict factors, Limits limits,
                              uint8_t* __restrict to) {
  for (int64_t j = 0; j < n; ++j) {
    const auto sum = static_cast<float>(sums[j] - point * weights[j] - points[j] * centered);
    const float moved = std::rint((sum + shifts[j]) * factors[j]) + limits.zero_point;
    const float below = moved < limits.high ? moved : limits.high;  // the limit, if it is NaN
    to[j] = static_cast<uint8_t>(static_cast<int32_t>(below > limits.low ? below : limits.low));
  }
}

}  // namespace

Requantization::Requantization(const Tensor& scale, const Tensor& bias, int64_t columns, double output_scale,
                               int64_t output_zero_point, int64_t quant_min, int64_t quant_max)
    : shifts_(empty(Sizes{columns}, DType::kFloat32, scale.device())),
      factors_(empty(Sizes{columns}, DType::kFloat32, scale.device())),
      zero_point_(static_cast<float>(output_zero_point)),
      low_(static_cast<float>(quant_min)),
      high_(static_cast<float>(quant_max)) {
  const Tensor scales = numbers(scale, columns, "scale");
  const Tensor added = bias ? numbers(bias, columns, "bias") : Tensor();
  divide(columns, scales.data_as<const float>(), added ? added.data_as<const float>() : nullptr,
         static_cast<float>(output_scale), shifts_.data_as<float>(), factors_.data_as<float>());
}

void Requantization::row(int64_t first, int64_t n, const int32_t* sums, const int32_t* weights, int32_t point,
                         int32_t centered, const int32_t* points, uint8_t* to) const {
  requantize_row(n, sums, weights, point, centered, points, shifts_.data_as<const float>() + first,
                 factors_.data_as<const float>() + first, {zero_point_, low_, high_}, to);
}

}  // namespace tt::cpu
