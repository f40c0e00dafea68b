// choose_quantization_params: scale and zero point for the range of a tensor.
#include "kernels/common/quantized/choose_params.h"

#include <cmath>
#include <optional>

#include "kernels/cpu/iteration/copy.h"
#include "kernels/cpu/kernels.h"

namespace tt::cpu {
namespace {

float float32(const Tensor& number) {
  Tensor result = empty(Sizes{}, DType::kFloat32, number.device());
  copy(number, result);
  return *result.data_as<float>();
}

}  // namespace

void choose_quantization_params(const Tensor& input, int64_t quant_min, int64_t quant_max, Tensor& scale,
                                Tensor& zero_point) {
  check_quantization_limits(quant_min, quant_max);
  float min = 0, max = 0;
  if (input.numel() > 0) {
    Tensor low = empty(Sizes{}, input.dtype(), input.device()), high = empty(Sizes{}, input.dtype(), input.device());
    amin(input, std::nullopt, false, low);
    amax(input, std::nullopt, false, high);
    min = float32(low);
    max = float32(high);
  }
  if (!(min <= max && std::isfinite(min) && std::isfinite(max))) throw not_finite(min, max);
  const QuantizationParams params =
      tt::choose_quantization_params(min, max, static_cast<int32_t>(quant_min), static_cast<int32_t>(quant_max));
  *scale.data_as<double>() = params.scale;
  *zero_point.data_as<int64_t>() = params.zero_point;
}

}  // namespace tt::cpu
