// choose_quantization_params and observe_moving_average: scales and zero points for the range of a tensor.
#include <bit>
#include <optional>

#include "kernels/common/quantized/choose_params.h"
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch/access.h"
#include "kernels/cuda/launch/first_error.h"
#include "kernels/cuda/launch/layout.h"

namespace tt::cuda {
namespace {

Error range_not_finite(const DeviceErrorCell& cell) {
  return not_finite(std::bit_cast<float>(static_cast<uint32_t>(cell.values[0])),
                    std::bit_cast<float>(static_cast<uint32_t>(cell.values[1])));
}

// `low` and `high` are null for a tensor without elements.
void choose(const Queue& queue, const float* low, const float* high, int32_t quant_min, int32_t quant_max,
            double* scale, int64_t* zero_point) {
  DeviceErrorCell* const cell = open_error_cell(queue, &range_not_finite);
  for_each(queue, 1, [=] TT_DEVICE(int64_t) {
    float min = low ? *low : 0, max = high ? *high : 0;
    if (!(min <= max) || math::isinf(min) || math::isinf(max)) {
      store_error(cell, 0, std::bit_cast<uint32_t>(min), std::bit_cast<uint32_t>(max), 0);
      min = max = 0;
    }
    const QuantizationParams params = tt::choose_quantization_params(min, max, quant_min, quant_max);
    *scale = params.scale;
    *zero_point = params.zero_point;
  });
}

// The smallest or largest elements, as float32: of the tensor, or of each entry of dimension `axis`.
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

// A tensor of an observer: one number per channel, of any dtype and layout. Captured by value.
struct State {
  Access access;
  Layout<1> layout;

  explicit State(const Tensor& t) : access(t), layout(t.sizes(), {t.strides()}) {}
  TT_DEVICE float load(int64_t i) const { return access.load<float>(layout.offsets(i).at[0]); }
  template <typename C>
  TT_DEVICE void store(int64_t i, C value) const {
    access.store(layout.offsets(i).at[0], value);
  }
};

struct Observer {
  const double* switches;
  const float *low, *high;
  State min, max, scale, zero_point;
  float rate;
  int32_t quant_min, quant_max;
  bool symmetric;

  TT_DEVICE void operator()(int64_t i) const {
    const bool observes = switches[0] != 0, chooses = switches[1] != 0;
    float least = min.load(i), most = max.load(i);
    if (observes) {
      least = math::isinf(least) ? low[i] : least + rate * (low[i] - least);
      most = math::isinf(most) ? high[i] : most + rate * (high[i] - most);
      min.store(i, least);
      max.store(i, most);
    }
    if (!chooses) return;
    const QuantizationParams params =
        tt::choose_quantization_params(least, most, quant_min, quant_max, symmetric, true);
    scale.store(i, static_cast<float>(params.scale));
    zero_point.store(i, params.zero_point);
  }
};

}  // namespace

void choose_quantization_params(const Tensor& input, int64_t quant_min, int64_t quant_max, Tensor& scale,
                                Tensor& zero_point) {
  check_quantization_limits(quant_min, quant_max);
  Tensor low, high;
  if (input.numel() > 0) {
    low = extremes(input, std::nullopt, false);
    high = extremes(input, std::nullopt, true);
  }
  choose(queue_of(input), low ? low.data_as<float>() : nullptr, high ? high.data_as<float>() : nullptr,
         static_cast<int32_t>(quant_min), static_cast<int32_t>(quant_max), scale.data_as<double>(),
         zero_point.data_as<int64_t>());
}

void observe_moving_average(const Tensor& input, const Tensor& observer_on, const Tensor& running_min,
                            const Tensor& running_max, const Tensor& scale, const Tensor& zero_point,
                            double averaging_const, int64_t quant_min, int64_t quant_max, int64_t ch_axis, bool per_row,
                            bool symmetric) {
  if (input.numel() == 0) return;
  const Tensor switches = contiguous_as(observer_on, DType::kFloat64);
  const std::optional<int64_t> axis = per_row ? std::optional<int64_t>(ch_axis) : std::nullopt;
  const Tensor low = extremes(input, axis, false), high = extremes(input, axis, true);
  for_each(queue_of(input), low.numel(),
           Observer{switches.data_as<double>(), low.data_as<float>(), high.data_as<float>(), State(running_min),
                    State(running_max), State(scale), State(zero_point), static_cast<float>(averaging_const),
                    static_cast<int32_t>(quant_min), static_cast<int32_t>(quant_max), symmetric});
}

}  // namespace tt::cuda
