// Products of floating-point rows with weights of 8 or 4 bits.
//
// With few rows the weights are converted in registers, so that the time is that of reading their bytes; with many rows
// a panel of them is converted to float32 at a time, or all of them without AVX-512. Sums are float32 and do not depend
// on the number of threads.
#include <algorithm>

#include "engine/device/parallel.h"
#include "engine/schema/error.h"
#include "kernels/cpu/iteration/contiguous.h"
#include "kernels/cpu/iteration/copy.h"
#include "kernels/cpu/iteration/has_avx512.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/loops/clones.h"
#include "kernels/cpu/quantized/int8_operands.h"
#include "kernels/cpu/quantized/weight_blocked.h"
#include "kernels/cpu/quantized/weight_dot.h"

namespace tt::cpu {
namespace {

// Up to which weights are converted for each row of the result.
constexpr int64_t kFewBlockedRows = 4;  // with AVX-512
constexpr int64_t kFewRows = 16;
constexpr int64_t kHalf = kPackedWeights / 2;

// Calls f(first row, rows, column) for pieces of an m x n result, on the thread pool.
template <typename F>
void for_pieces(int64_t m, int64_t n, int64_t k, F&& f) {
  const int64_t work = std::max<int64_t>(k * m, 1);
  parallel_for(n, std::max<int64_t>(1, (int64_t{1} << 17) / work), [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) {
      for (int64_t row = 0; row < m; row += kWeightRows)
        f(row, static_cast<int>(std::min<int64_t>(kWeightRows, m - row)), j);
    }
  });
}

Tensor float_result(const Tensor& out) {
  return out.dtype() == DType::kFloat32 ? out : empty(out.sizes(), DType::kFloat32, out.device());
}

// Calls f(row) on the thread pool for n rows of k elements.
template <typename F>
void for_rows(int64_t n, int64_t k, F&& f) {
  parallel_for(n, std::max<int64_t>(1, (int64_t{1} << 15) / std::max<int64_t>(k, 1)), [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) f(j);
  });
}

TT_CLONES void widen_int8(int64_t k, const int8_t* w, float scale, float* to) {
  for (int64_t p = 0; p < k; ++p) to[p] = static_cast<float>(w[p]) * scale;
}

// A group of packed 4-bit weights.
TT_CLONES void widen_int4(int64_t k, const uint8_t* w, float scale, float zero, float* to) {
  for (int64_t p = 0; p < k; p += kPackedWeights) {
    for (int64_t i = 0; i < kHalf; ++i) to[p + i] = static_cast<float>((w[p / 2 + i] & 15) - 8) * scale + zero;
    for (int64_t i = 0; i < kHalf; ++i) to[p + kHalf + i] = static_cast<float>((w[p / 2 + i] >> 4) - 8) * scale + zero;
  }
}

Tensor wide_int8(const Tensor& weight, const Tensor& scales) {
  const int64_t n = weight.size(0), k = weight.size(1);
  Tensor result = empty(weight.sizes(), DType::kFloat32, weight.device());
  for_rows(n, k, [&](int64_t j) {
    widen_int8(k, weight.data_as<const int8_t>() + j * k, scales.data_as<const float>()[j],
               result.data_as<float>() + j * k);
  });
  return result;
}

Tensor wide_int4(const Tensor& weight, int64_t group_size, const Tensor& scales_and_zeros) {
  const int64_t n = weight.size(0), k = weight.size(1) * 2;
  Tensor result = empty(Sizes{n, k}, DType::kFloat32, weight.device());
  for_rows(n, k, [&](int64_t j) {
    const uint8_t* w = weight.data_as<const uint8_t>() + j * k / 2;
    float* to = result.data_as<float>() + j * k;
    for (int64_t p = 0; p < k; p += group_size) {
      const float* scale = scales_and_zeros.data_as<const float>() + (p / group_size * n + j) * 2;
      widen_int4(group_size, w + p / 2, scale[0], scale[1], to + p);
    }
  });
  return result;
}

}  // namespace

void int8_weight_mm(const Tensor& input, const Tensor& weight, const Tensor& scales, Tensor& out) {
  const int64_t n = weight.size(0), k = weight.size(1), m = k ? input.numel() / k : 0;
  const Tensor x = contiguous_as(input, DType::kFloat32), w = contiguous_as(weight, DType::kInt8);
  const Tensor s = numbers(scales, n, "scales");
  Tensor result = float_result(out);
  if (k == 0) {
    std::fill_n(result.data_as<float>(), result.numel(), 0.0f);
  } else if (m > kFewBlockedRows && has_avx512()) {
    multiply_int8(m, n, k, x.data_as<const float>(), w.data_as<const int8_t>(), s.data_as<const float>(),
                  result.data_as<float>());
  } else if (m > kFewRows) {
    linear(x, wide_int8(w, s), Tensor(), result);
  } else {
    for_pieces(m, n, k, [&](int64_t row, int rows, int64_t j) {
      float sums[kWeightRows];
      dot_int8(rows, k, x.data_as<const float>() + row * k, w.data_as<const int8_t>() + j * k, sums);
      for (int r = 0; r < rows; ++r) result.data_as<float>()[(row + r) * n + j] = sums[r] * s.data_as<float>()[j];
    });
  }
  if (!result.same(out)) copy(result, out);
}

void int4_pack(const Tensor& weight, Tensor& out) {
  const int64_t n = weight.size(0), k = weight.size(1);
  const Tensor w = contiguous_as(weight, DType::kInt32);
  const int32_t* from = w.data_as<const int32_t>();
  uint8_t* to = out.data_as<uint8_t>();
  parallel_for(n * k / kPackedWeights, 512, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      for (int64_t i = 0; i < kHalf; ++i) {
        const int32_t low = from[b * kPackedWeights + i] & 15, high = from[b * kPackedWeights + kHalf + i] & 15;
        to[b * kHalf + i] = static_cast<uint8_t>(low | high << 4);
      }
    }
  });
}

void int4_weight_mm(const Tensor& input, const Tensor& weight, int64_t group_size, const Tensor& scales_and_zeros,
                    Tensor& out) {
  const int64_t n = weight.size(0), k = input.size(1), m = input.size(0);
  const Tensor x = contiguous_as(input, DType::kFloat32), w = contiguous_as(weight, DType::kUInt8);
  const Tensor s = contiguous_as(scales_and_zeros, DType::kFloat32);  // k / group_size, n, 2
  Tensor result = float_result(out);
  if (k == 0) {
    std::fill_n(result.data_as<float>(), result.numel(), 0.0f);
  } else if (m > kFewBlockedRows && has_avx512()) {
    const Int4Row first{k, group_size, w.data_as<const uint8_t>(), s.data_as<const float>(), n * 2};
    multiply_int4(m, n, first, x.data_as<const float>(), result.data_as<float>());
  } else if (m > kFewRows) {
    linear(x, wide_int4(w, group_size, s), Tensor(), result);
  } else {
    const int64_t groups = k / group_size;
    Tensor group_sums = empty(Sizes{m * groups}, DType::kFloat32, x.device());
    for (int64_t g = 0; g < m * groups; ++g) {
      float sum = 0;
      for (int64_t i = 0; i < group_size; ++i) sum += x.data_as<const float>()[g * group_size + i];
      group_sums.data_as<float>()[g] = sum;
    }
    for_pieces(m, n, k, [&](int64_t row, int rows, int64_t j) {
      float sums[kWeightRows];
      const Int4Row weights{k, group_size, w.data_as<const uint8_t>() + j * k / 2, s.data_as<const float>() + j * 2,
                            n * 2};
      dot_int4(rows, weights, x.data_as<const float>() + row * k, group_sums.data_as<float>() + row * groups, sums);
      for (int r = 0; r < rows; ++r) result.data_as<float>()[(row + r) * n + j] = sums[r];
    });
  }
  if (!result.same(out)) copy(result, out);
}

}  // namespace tt::cpu
