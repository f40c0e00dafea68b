// observe_moving_average: updates an observer's moving averages of minimum and maximum, and the scale and zero point.
#include <algorithm>
#include <cmath>
#include <optional>

#include "engine/schema/error.h"
#include "kernels/common/quantized/choose_params.h"
#include "kernels/cpu/iteration/contiguous.h"
#include "kernels/cpu/iteration/copy.h"
#include "kernels/cpu/kernels.h"

namespace tt::cpu {
namespace {

// The smallest or largest elements: of the tensor, or of each entry of dimension `axis`.
Tensor extremes(const Tensor& input, std::optional<int64_t> axis, bool largest) {
  Sizes dims;
  for (int64_t d = 0; d < input.dim(); ++d) {
    if (!axis || d != *axis) dims.push_back(d);
  }
  Tensor result = empty(axis ? Sizes{input.size(*axis)} : Sizes{}, input.dtype(), input.device());
  if (axis && input.dim() == 1) {
    copy(input, result);
  } else {
    (largest ? amax : amin)(input, absl::Span<const int64_t>(dims), false, result);
  }
  return contiguous_as(result, DType::kFloat32);
}

}  // namespace

void observe_moving_average(const Tensor& input, const Tensor& observer_on, const Tensor& running_min,
                            const Tensor& running_max, const Tensor& scale, const Tensor& zero_point,
                            double averaging_const, int64_t quant_min, int64_t quant_max, int64_t ch_axis, bool per_row,
                            bool symmetric) {
  const Tensor switches = contiguous_as(observer_on, DType::kFloat64);
  const bool observes = switches.data_as<double>()[0] != 0, chooses = switches.data_as<double>()[1] != 0;
  if (input.numel() == 0 || !(observes || chooses)) return;
  const std::optional<int64_t> axis = per_row ? std::optional<int64_t>(ch_axis) : std::nullopt;
  const Tensor low = extremes(input, axis, false), high = extremes(input, axis, true);
  const Tensor least = contiguous_as(running_min, DType::kFloat32), most = contiguous_as(running_max, DType::kFloat32);
  // In the sizes of the states, which may have more dimensions than one.
  Tensor scales = empty(scale.sizes(), DType::kFloat32, input.device());
  Tensor points = empty(zero_point.sizes(), DType::kInt32, input.device());
  Tensor new_least = empty(running_min.sizes(), DType::kFloat32, input.device());
  Tensor new_most = empty(running_max.sizes(), DType::kFloat32, input.device());
  const auto rate = static_cast<float>(averaging_const);
  for (int64_t i = 0; i < low.numel(); ++i) {
    float min = least.data_as<float>()[i], max = most.data_as<float>()[i];
    const float x = low.data_as<float>()[i], y = high.data_as<float>()[i];
    if (observes) {
      min = std::isinf(min) ? x : min + rate * (x - min);
      max = std::isinf(max) ? y : max + rate * (y - max);
    }
    new_least.data_as<float>()[i] = min;
    new_most.data_as<float>()[i] = max;
    const QuantizationParams params = tt::choose_quantization_params(min, max, static_cast<int32_t>(quant_min),
                                                                     static_cast<int32_t>(quant_max), symmetric, true);
    scales.data_as<float>()[i] = static_cast<float>(params.scale);
    points.data_as<int32_t>()[i] = params.zero_point;
  }
  if (observes) {
    copy(new_least, running_min);
    copy(new_most, running_max);
  }
  if (chooses) {
    copy(scales, scale);
    copy(points, zero_point);
  }
}

}  // namespace tt::cpu
