// The scale and zero point with which integers represent a range of numbers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>

#include "engine/schema/error.h"
#include "kernels/common/math/scalar_math.h"

namespace tt {

// Throws Error (RuntimeError) unless quant_min < quant_max, both of at most 31 bits.
inline void check_quantization_limits(int64_t quant_min, int64_t quant_max) {
  constexpr int64_t kLimit = std::numeric_limits<int32_t>::max() / 2;
  check(-kLimit <= quant_min && quant_min < quant_max && quant_max <= kLimit,
        "[choose_quantization_params] expected quant_min < quant_max of at most 31 bits, got ", quant_min, " and ",
        quant_max);
}
// The error for a range that no finite scale represents.
inline Error not_finite(float min, float max) {
  return Error(ErrorKind::kRuntime, absl::StrCat("[choose_quantization_params] expected a tensor of finite numbers, ",
                                                 "got the range from ", min, " to ", max));
}
// The error for a range with NaN whose tensor is quantized for a product.
inline Error not_a_range(float min, float max) {
  return Error(ErrorKind::kRuntime, absl::StrCat("In ChooseQuantizationParams, min should be less than or equal to ",
                                                 "max, got ", min, " and ", max));
}

struct QuantizationParams {
  double scale;
  int32_t zero_point;
};

// Returns the parameters for integers from `quant_min` to `quant_max`, which is greater, and numbers from `min` to
// `max`; 0 is exactly represented. If `symmetric` and the range contains numbers of both signs, the zero point is the
// middle of the integers. `single` rounds the scale to float32 before the zero point is computed. The steps and their
// precision are PyTorch's, so that the results have its bits.
TT_HOST_DEVICE QuantizationParams choose_quantization_params(float min, float max, int32_t quant_min, int32_t quant_max,
                                                             bool symmetric = false, bool single = false) {
  constexpr float kSmallest = 6.1e-5f;
  if (symmetric && min < 0 && max > 0) {
    const int32_t half = (quant_max - quant_min) / 2;
    const double widest =
        std::max(std::fabs(min / static_cast<float>(-(half + 1))), std::fabs(max / static_cast<float>(half)));
    min = static_cast<float>(widest * -(half + 1));
    max = static_cast<float>(widest * half);
  }
  min = std::min(min, 0.0f);
  max = std::max(max, 0.0f);
  double scale = (static_cast<double>(max) - min) / (quant_max - quant_min);
  if (single) scale = static_cast<float>(scale);
  if (static_cast<float>(scale) == 0 || std::isinf(1.0f / static_cast<float>(scale))) scale = 0.1;
  if (scale < kSmallest) {  // widens the range
    const float before = static_cast<float>(scale);
    scale = kSmallest;
    if (min == 0) {
      max = kSmallest * static_cast<float>(quant_max - quant_min);
    } else if (max == 0) {
      min = -kSmallest * static_cast<float>(quant_max - quant_min);
    } else {
      min *= kSmallest / before;
      max *= kSmallest / before;
    }
  }
  // Of the two ends, the one at which rounding makes the smaller error.
  const double from_min = quant_min - min / scale, from_max = quant_max - max / scale;
  const double min_error = std::abs(quant_min) - std::abs(min / scale);
  const double max_error = std::abs(quant_max) - std::abs(max / scale);
  double point = min_error < max_error ? from_min : from_max;
  if (symmetric && min < 0 && max > 0) point = (quant_min + quant_max) / 2.0;
  if (!(point >= quant_min)) return {scale, quant_min};
  if (point > quant_max) return {scale, quant_max};
  return {scale, static_cast<int32_t>(std::nearbyint(point))};
}

}  // namespace tt
