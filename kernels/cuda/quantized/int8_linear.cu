// int8_linear: products of quantized integers. int8_linear_quantized has 8-bit results; int8_linear_dynamic quantizes
// its floating-point input first.
#include <bit>
#include <limits>

#include "kernels/common/quantized/choose_params.h"
#include "kernels/cuda/iteration/atomic_accumulate.h"
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch/first_error.h"
#include "kernels/cuda/launch/index_divider.h"
#include "kernels/cuda/quantized/int8_product.h"
#include "kernels/cuda/quantized/requantize.h"

namespace tt::cuda {
namespace {

// Results are contiguous: rows of n columns.
struct StoreSums {
  int32_t* out;
  int64_t n;

  TT_DEVICE void operator()(int64_t row, int64_t column, int32_t sum) const { out[row * n + column] = sum; }
};

struct StoreRequantized {
  uint8_t* out;
  int64_t n;
  Requantization requantize;

  TT_DEVICE void operator()(int64_t row, int64_t column, int32_t sum) const {
    out[row * n + column] = requantize(column, sum);
  }
};

// Converts sums to numbers, whose rows and columns have scales.
struct StoreNumbers {
  float* out;
  int64_t n;
  PerColumn<float> row_scales, scales, bias;
  bool relu;

  TT_DEVICE void operator()(int64_t row, int64_t column, int32_t sum) const {
    float number = static_cast<float>(sum) * (row_scales.at(row) * scales.at(column));
    if (bias.data) number += bias.at(column);
    out[row * n + column] = relu && number < 0 ? 0.0f : number;
  }
};

int64_t rows_of(const Tensor& input) {
  const int64_t k = input.size(input.dim() - 1);
  return k == 0 ? 0 : input.numel() / k;
}

template <typename Store>
void multiply(const Tensor& input, const Tensor& weight, const Tensor& zero_point, const Tensor& weight_zero_point,
              const Store& store) {
  const int64_t n = weight.size(0), k = weight.size(1);
  const Tensor zero = zero_point_for(zero_point, input.dtype()), points = weight_zero_points(weight_zero_point, n);
  const Tensor a = contiguous(input), b = contiguous_as(weight, DType::kInt8);
  const int32_t shift = input.dtype() == DType::kUInt8 ? 128 : 0;
  multiply_int8(queue_of(input), Int8Product<Int8Rows, Store>{{static_cast<const uint8_t*>(a.data()), k, shift},
                                                              {static_cast<const uint8_t*>(b.data()), k, 0},
                                                              per_column<int32_t>(zero),
                                                              per_column<int32_t>(points),
                                                              rows_of(input),
                                                              n,
                                                              k,
                                                              1,
                                                              store});
}

// The error of a tensor that is quantized with one scale: rows with scales of their own have results of NaN instead.
Error range_with_nan(const DeviceErrorCell& cell) {
  return not_a_range(std::bit_cast<float>(static_cast<uint32_t>(cell.values[0])),
                     std::bit_cast<float>(static_cast<uint32_t>(cell.values[1])));
}

// Chooses scales and zero points for the ranges from `low` to `high`. The scale of numbers that are not all finite is
// NaN, and so are the results. `cell` is null if ranges with NaN are not errors.
void choose_scales(const Queue& queue, int64_t count, const float* low, const float* high, int32_t quant_max,
                   DeviceErrorCell* cell, float* scales, int32_t* points) {
  for_each(queue, count, [=] TT_DEVICE(int64_t i) {
    const bool is_number = low[i] <= high[i];
    if (!is_number && cell) store_error(cell, 0, std::bit_cast<uint32_t>(low[i]), std::bit_cast<uint32_t>(high[i]), 0);
    const float min = low[i] < 0 ? low[i] : 0, max = high[i] > 0 ? high[i] : 0;
    const QuantizationParams params =
        tt::choose_quantization_params(is_number ? min : 0, is_number ? max : 0, 0, quant_max);
    const bool finite = is_number && !math::isinf(min) && !math::isinf(max);
    scales[i] = finite ? static_cast<float>(params.scale) : std::numeric_limits<float>::quiet_NaN();
    points[i] = params.zero_point;
  });
}

// PyTorch's dynamic quantization: round(x / scale) + zero_point, within the integers from 0 to `quant_max`.
void quantize(const Queue& queue, int64_t n, int64_t per_scale, const float* x, const float* scales,
              const int32_t* points, float quant_max, uint8_t* to) {
  const IndexDivider by_scale(per_scale, n);
  for_each(queue, n, [=] TT_DEVICE(int64_t i) {
    const int64_t row = by_scale.quotient(i);
    const float moved = math::rint(x[i] * (1.0f / scales[row])) + static_cast<float>(points[row]);
    const float above = moved > 0 ? moved : 0.0f;  // 0 if the scale is NaN
    to[i] = static_cast<uint8_t>(static_cast<int32_t>(above < quant_max ? above : quant_max));
  });
}

// A floating-point matrix as unsigned integers, with a scale and zero point for the matrix or for each row.
struct Quantized {
  Tensor values, scales, points;

  // `x` is contiguous, float32, with rows of k elements, and not empty.
  Quantized(const Tensor& x, int64_t k, int32_t quant_max, bool per_row)
      : values(empty({x.numel()}, DType::kUInt8, x.device())),
        scales(empty({per_row ? x.numel() / k : 1}, DType::kFloat32, x.device())),
        points(empty(scales.sizes(), DType::kInt32, x.device())) {
    const Queue queue = queue_of(x);
    const int64_t rows = scales.numel(), per_scale = x.numel() / rows, last = 1;
    const Tensor matrix = view_of(x, {{rows, per_scale}, {per_scale, 1}, x->offset, true});
    Tensor low = empty({rows}, DType::kFloat32, x.device()), high = empty({rows}, DType::kFloat32, x.device());
    amin(matrix, absl::MakeConstSpan(&last, 1), false, low);
    amax(matrix, absl::MakeConstSpan(&last, 1), false, high);
    choose_scales(queue, rows, low.data_as<float>(), high.data_as<float>(), quant_max,
                  per_row ? nullptr : open_error_cell(queue, &range_with_nan), scales.data_as<float>(),
                  points.data_as<int32_t>());
    quantize(queue, x.numel(), per_scale, x.data_as<float>(), scales.data_as<float>(), points.data_as<int32_t>(),
             static_cast<float>(quant_max), values.data_as<uint8_t>());
  }
};

// The results of rows without elements.
void requantize_zeros(const Queue& queue, int64_t n, const StoreRequantized& store) {
  for_each(queue, n, [=] TT_DEVICE(int64_t i) { store(i / store.n, i % store.n, 0); });
}

}  // namespace

void int8_linear(const Tensor& input, const Tensor& weight, const Tensor& zero_point, const Tensor& weight_zero_point,
                 Tensor& out) {
  if (weight.size(1) == 0) return fill_zeros(queue_of(out), out);
  multiply(input, weight, zero_point, weight_zero_point, StoreSums{out.data_as<int32_t>(), weight.size(0)});
}

void int8_linear_quantized(const Tensor& input, const Tensor& weight, const Tensor& zero_point,
                           const Tensor& weight_zero_point, const Tensor& scale, const Tensor& bias,
                           double output_scale, int64_t output_zero_point, int64_t quant_min, int64_t quant_max,
                           bool /*is_signed*/, Tensor& out) {
  if (out.numel() == 0) return;
  const int64_t n = weight.size(0);
  const Tensor scales = column_numbers(scale, n, "scale"), added = column_numbers(bias, n, "bias");
  const StoreRequantized store{
      static_cast<uint8_t*>(out.data()),
      n,
      {per_column<float>(scales), per_column<float>(added), static_cast<float>(output_scale),
       static_cast<float>(output_zero_point), static_cast<float>(quant_min), static_cast<float>(quant_max)}};
  if (weight.size(1) == 0) return requantize_zeros(queue_of(out), out.numel(), store);
  multiply(input, weight, zero_point, weight_zero_point, store);
}

void int8_linear_dynamic(const Tensor& input, const Tensor& weight, const Tensor& weight_scale,
                         const Tensor& weight_zero_point, const Tensor& bias, bool reduce_range, bool per_row,
                         bool relu, Tensor& out) {
  const int64_t n = weight.size(0), k = weight.size(1), m = rows_of(input);
  check(k > 0, "[int8_linear_dynamic] expected at least one input feature");
  const Tensor points = weight_zero_points(weight_zero_point, n);
  const Tensor scales = column_numbers(weight_scale, n, "weight_scale"), added = column_numbers(bias, n, "bias");
  if (out.numel() == 0) return;
  const Quantized a(contiguous_as(input, DType::kFloat32), k, reduce_range ? 127 : 255, per_row);
  const Tensor b = contiguous_as(weight, DType::kInt8);
  const AccumulateBuffer result(out, DType::kFloat32);
  const StoreNumbers store{result.data<float>(),     n,   per_column<float>(a.scales), per_column<float>(scales),
                           per_column<float>(added), relu};
  multiply_int8(queue_of(out), Int8Product<Int8Rows, StoreNumbers>{{a.values.data_as<uint8_t>(), k, 128},
                                                                   {static_cast<const uint8_t*>(b.data()), k, 0},
                                                                   per_column<int32_t>(a.points),
                                                                   per_column<int32_t>(points),
                                                                   m,
                                                                   n,
                                                                   k,
                                                                   1,
                                                                   store});
  result.copy_to_output();
}

}  // namespace tt::cuda
