// int8_linear: products of quantized integers. int8_linear_quantized has 8-bit results; int8_linear_dynamic quantizes
// its floating-point input first.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "engine/device/parallel.h"
#include "engine/schema/error.h"
#include "kernels/common/quantized/choose_params.h"
#include "kernels/cpu/iteration/contiguous.h"
#include "kernels/cpu/iteration/copy.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/loops/clones.h"
#include "kernels/cpu/quantized/int8_dot.h"
#include "kernels/cpu/quantized/int8_operands.h"
#include "kernels/cpu/quantized/int8_weights.h"
#include "kernels/cpu/quantized/requantize.h"
#include "kernels/cpu/quantized/weight_dot.h"

namespace tt::cpu {
namespace {

TT_CLONES int32_t sum_of(int64_t n, const uint8_t* x) {
  int32_t sum = 0;
  for (int64_t p = 0; p < n; ++p) sum += x[p];
  return sum;
}

// The sums of each row's unsigned elements.
Tensor row_sums(const Tensor& values, int64_t m, int64_t k) {
  Tensor result = empty(Sizes{m}, DType::kInt32, values.device());
  int32_t* sums = result.data_as<int32_t>();
  const uint8_t* x = values.data_as<const uint8_t>();
  parallel_for(m, std::max<int64_t>(1, (int64_t{1} << 16) / std::max<int64_t>(k, 1)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) sums[i] = sum_of(k, x + i * k);
  });
  return result;
}

bool all_zero(const Tensor& integers) {
  const int32_t* x = integers.data_as<int32_t>();
  return std::all_of(x, x + integers.numel(), [](int32_t n) { return n == 0; });
}

// A floating-point matrix as unsigned integers, with a scale and zero point for the matrix or for each row. The scale
// of values that are not all finite is NaN, and so are the results, as those of other operators.
struct Quantized {
  Tensor values, scales, zero_points;
};

// The least and the greatest of n numbers and 0; NaN if one of the numbers is.
std::pair<float, float> range_of(int64_t n, const float* x) {
  constexpr int64_t kPiece = int64_t{1} << 15;
  std::vector<std::pair<float, float>> ranges((n + kPiece - 1) / kPiece);
  parallel_for(static_cast<int64_t>(ranges.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      extend_range(std::min(kPiece, n - i * kPiece), x + i * kPiece, &ranges[i].first, &ranges[i].second);
    }
  });
  std::pair<float, float> all{};
  for (const auto& [min, max] : ranges) {
    if (std::isnan(min) || std::isnan(max)) return {min, max};
    all = {std::min(all.first, min), std::max(all.second, max)};
  }
  return all;
}

Quantized quantize(const Tensor& x, int64_t m, int64_t k, int32_t quant_max, bool per_row) {
  Quantized q{empty(Sizes{m, k}, DType::kUInt8, x.device()), empty(Sizes{m}, DType::kFloat32, x.device()),
              empty(Sizes{m}, DType::kInt32, x.device())};
  const float* from = x.data_as<const float>();
  float* scales = q.scales.data_as<float>();
  int32_t* points = q.zero_points.data_as<int32_t>();
  // NaN and infinity have no integers: the scale, and with it the results, is NaN.
  const auto choose = [&](float min, float max) {
    QuantizationParams params = tt::choose_quantization_params(min, max, 0, quant_max);
    if (!std::isfinite(min) || !std::isfinite(max)) params.scale = std::numeric_limits<double>::quiet_NaN();
    return params;
  };
  QuantizationParams all{};
  if (!per_row) {
    const auto [min, max] = range_of(m * k, from);
    if (!(min <= max)) throw not_a_range(min, max);
    all = choose(min, max);
  }
  parallel_for(m, std::max<int64_t>(1, (int64_t{1} << 14) / std::max<int64_t>(k, 1)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      QuantizationParams params = all;
      if (per_row) {
        float min = 0, max = 0;
        extend_range(k, from + i * k, &min, &max);
        params = choose(min, max);
      }
      scales[i] = static_cast<float>(params.scale);
      points[i] = params.zero_point;
      uint8_t* to = q.values.data_as<uint8_t>() + i * k;
      if (std::isnan(scales[i])) {
        std::fill_n(to, k, uint8_t{0});
      } else {
        quantize_row(k, from + i * k, 1.0f / scales[i], static_cast<float>(points[i]), static_cast<float>(quant_max),
                     to);
      }
    }
  });
  return q;
}

// The zero points, scales and biases of the weight's rows; bias may be null.
struct Columns {
  const int32_t* points;
  const float* scales;
  const float* bias;

  Columns from(int64_t column) const { return {points + column, scales + column, bias ? bias + column : nullptr}; }
};

// Converts integer sums of a row of the input to numbers. One loop over pointers that do not alias: a block has only 64
// columns, so that checks and further loops would take longer than the arithmetic.
template <bool kCentered, bool kBias, bool kRelu>
[[gnu::always_inline]] inline void finish_columns(int64_t n, const int32_t* __restrict sums,
                                                  const int32_t* __restrict weights, int32_t point, int32_t centered,
                                                  float scale, const int32_t* __restrict points,
                                                  const float* __restrict scales, const float* __restrict bias,
                                                  float* __restrict to) {
  for (int64_t j = 0; j < n; ++j) {
    int32_t sum = sums[j] - point * weights[j];
    if (kCentered) sum -= points[j] * centered;
    float number = static_cast<float>(sum) * (scale * scales[j]);
    if (kBias) number += bias[j];
    if (kRelu) number = number < 0 ? 0 : number;
    to[j] = number;
  }
}
// The rows of the input that a block belongs to: their zero points, scales, and sums of the elements minus the zero
// point, which may be null.
struct InputRows {
  const int32_t* points;
  const float* scales;
  const int32_t* centered;
};

// Writes the numbers of a block to `to`, whose rows are `to_step` elements apart. The loop over rows is here, because a
// call of a function that depends on the processor takes as long as a row.
TT_CLONES void finish_block(const Int8Block& t, InputRows rows, Columns c, bool relu, float* to, int64_t to_step) {
  const int64_t n = t.columns;
  const auto finish = [&]<bool kCentered, bool kBias, bool kRelu>() __attribute__((always_inline)) {
    for (int64_t i = 0; i < t.rows; ++i) {
      finish_columns<kCentered, kBias, kRelu>(n, t.sums + i * t.step, t.weights, rows.points[i],
                                              kCentered ? rows.centered[i] : 0, rows.scales[i], c.points, c.scales,
                                              c.bias, to + i * to_step);
    }
  };
  const auto with_bias = [&]<bool kCentered, bool kBias>() __attribute__((always_inline)) {
    relu ? finish.template operator()<kCentered, kBias, true>() : finish.template operator()<kCentered, kBias, false>();
  };
  if (rows.centered) {
    c.bias ? with_bias.template operator()<true, true>() : with_bias.template operator()<true, false>();
  } else {
    c.bias ? with_bias.template operator()<false, true>() : with_bias.template operator()<false, false>();
  }
}

// The integer result of a row of the input.
TT_CLONES void subtract_points(int64_t n, const int32_t* sums, const int32_t* weights, int32_t point, int32_t centered,
                               const int32_t* points, int32_t* to) {
  for (int64_t j = 0; j < n; ++j) to[j] = sums[j] - point * weights[j] - points[j] * centered;
}

// `packed`: of packed_rows(), may be undefined.
Int8Product with_weights(Int8Product product, const Tensor& packed) {
  if (packed) product.packed = packed.data_as<const int8_t>();
  return product;
}

int64_t rows_of(const Tensor& input) {
  const int64_t k = input.size(input.dim() - 1);
  return k == 0 ? 0 : input.numel() / k;
}

// The unsigned rows of a product of integers.
struct Rows {
  int32_t point;          // their zero point
  int32_t depth;          // elements of a row
  const int32_t* points;  // zero points of the weight's rows
  const int32_t* totals;  // sums of the rows; null if all zero points of the weight are 0

  // The sum of row i's elements minus the zero point; 0 if no zero point needs it.
  int32_t centered(int64_t i) const { return totals ? totals[i] - depth * point : 0; }
};

// Multiplies the input's rows with the weight's, and calls `store` with each block from several threads.
void multiply(const Tensor& input, const Tensor& weight, const Tensor& zero_point, const Tensor& weight_zero_point,
              absl::FunctionRef<void(const Rows&, const Int8Block&)> store) {
  const int64_t m = rows_of(input), n = weight.size(0), k = weight.size(1);
  const UnsignedOperand a = as_unsigned(input, integer_of(zero_point));
  const Tensor b = contiguous_as(weight, DType::kInt8), packed = packed_rows(weight, m);
  const Tensor points = integers(weight_zero_point, n, "weight_zero_point");
  const Tensor sums = all_zero(points) ? Tensor() : row_sums(a.values, m, k);
  const Rows rows{a.zero_point, static_cast<int32_t>(k), points.data_as<const int32_t>(),
                  sums ? sums.data_as<const int32_t>() : nullptr};
  int8_product(with_weights({m, n, k, a.values.data_as<const uint8_t>(), k, b.data_as<const int8_t>(), k}, packed),
               [&](const Int8Block& t) { store(rows, t); });
}

}  // namespace

void int8_linear(const Tensor& input, const Tensor& weight, const Tensor& zero_point, const Tensor& weight_zero_point,
                 Tensor& out) {
  const int64_t n = weight.size(0);
  int32_t* to = out.data_as<int32_t>();
  if (weight.size(1) == 0) {
    std::fill_n(to, out.numel(), 0);
    return;
  }
  multiply(input, weight, zero_point, weight_zero_point, [&](const Rows& rows, const Int8Block& t) {
    for (int64_t i = 0; i < t.rows; ++i) {
      subtract_points(t.columns, t.sums + i * t.step, t.weights, rows.point, rows.centered(t.row + i),
                      rows.points + t.column, to + (t.row + i) * n + t.column);
    }
  });
}

void int8_linear_quantized(const Tensor& input, const Tensor& weight, const Tensor& zero_point,
                           const Tensor& weight_zero_point, const Tensor& scale, const Tensor& bias,
                           double output_scale, int64_t output_zero_point, int64_t quant_min, int64_t quant_max,
                           bool /*is_signed*/, Tensor& out) {
  if (out.numel() == 0) return;
  const int64_t n = weight.size(0);
  const Requantization requantization(scale, bias, n, output_scale, output_zero_point, quant_min, quant_max);
  auto* to = static_cast<uint8_t*>(out.data());
  if (weight.size(1) == 0) {
    const std::vector<int32_t> none(n);
    for (int64_t i = 0; i < out.numel(); i += n) {
      requantization.row(0, n, none.data(), none.data(), 0, 0, none.data(), to + i);
    }
    return;
  }
  multiply(input, weight, zero_point, weight_zero_point, [&](const Rows& rows, const Int8Block& t) {
    for (int64_t i = 0; i < t.rows; ++i) {
      requantization.row(t.column, t.columns, t.sums + i * t.step, t.weights, rows.point, rows.centered(t.row + i),
                         rows.points + t.column, to + (t.row + i) * n + t.column);
    }
  });
}

void int8_linear_dynamic(const Tensor& input, const Tensor& weight, const Tensor& weight_scale,
                         const Tensor& weight_zero_point, const Tensor& bias, bool reduce_range, bool per_row,
                         bool relu, Tensor& out) {
  const int64_t n = weight.size(0), k = weight.size(1);
  check(k > 0, "[int8_linear_dynamic] expected at least one input feature");
  const int64_t m = rows_of(input);
  const Quantized a = quantize(contiguous_as(input, DType::kFloat32), m, k, reduce_range ? 127 : 255, per_row);
  const Tensor b = contiguous_as(weight, DType::kInt8), packed = packed_rows(weight, m);
  const Tensor points = integers(weight_zero_point, n, "weight_zero_point");
  const Tensor scales = numbers(weight_scale, n, "weight_scale");
  const Tensor added = bias ? numbers(bias, n, "bias") : Tensor();
  const bool symmetric = all_zero(points);
  const Tensor sums = symmetric ? Tensor() : row_sums(a.values, m, k);
  Tensor result = out.dtype() == DType::kFloat32 ? out : empty(out.sizes(), DType::kFloat32, out.device());
  float* to = result.data_as<float>();
  const auto depth = static_cast<int32_t>(k);
  const int32_t* row_points = a.zero_points.data_as<int32_t>();
  const float* row_scales = a.scales.data_as<float>();
  int32_t* centered = symmetric ? nullptr : sums.data_as<int32_t>();
  for (int64_t i = 0; centered && i < m; ++i) centered[i] -= depth * row_points[i];
  const Columns columns{points.data_as<int32_t>(), scales.data_as<float>(), added ? added.data_as<float>() : nullptr};
  int8_product(with_weights({m, n, k, a.values.data_as<const uint8_t>(), k, b.data_as<const int8_t>(), k}, packed),
               [&](const Int8Block& t) {
                 const InputRows rows{row_points + t.row, row_scales + t.row, centered ? centered + t.row : nullptr};
                 finish_block(t, rows, columns.from(t.column), relu, to + t.row * n + t.column, n);
               });
  if (!result.same(out)) copy(result, out);
}

}  // namespace tt::cpu
