// Products of floating-point rows with weights of 8 or 4 bits, which are converted in registers.
//
// With few rows the time is that of reading the weights' bytes. The sums are float32 and do not depend on the number
// of threads.
#include <algorithm>
#include <cstring>

#include "engine/device/parallel.h"
#include "engine/schema/error.h"
#include "kernels/cpu/iteration/contiguous.h"
#include "kernels/cpu/iteration/copy.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/loops/clones.h"
#include "kernels/cpu/quantized/int8_operands.h"

namespace tt::cpu {
namespace {

constexpr int kLanes = 16;
constexpr int64_t kPacked = 32;  // weights of 4 bits in 16 bytes: byte i has those of i and 16 + i
constexpr int kRows = 4;         // of the input, for which a weight is converted once
using Floats = float __attribute__((vector_size(kLanes * sizeof(float)), aligned(4)));
using Bytes = int8_t __attribute__((vector_size(kLanes), aligned(1)));
using UnsignedBytes = uint8_t __attribute__((vector_size(kLanes), aligned(1)));

inline float total(const Floats& v) {
  float sum = 0;
  for (int i = 0; i < kLanes; ++i) sum += v[i];
  return sum;
}

// sums[r] = the dot product of w and row r of x.
TT_CLONES void dot_int8(int64_t k, int64_t rows, const float* x, const int8_t* w, float* sums) {
  Floats first[kRows] = {}, second[kRows] = {};
  int64_t p = 0;
  for (; p + 2 * kLanes <= k; p += 2 * kLanes) {
    Bytes a, b;
    std::memcpy(&a, w + p, kLanes);
    std::memcpy(&b, w + p + kLanes, kLanes);
    const Floats wa = __builtin_convertvector(a, Floats), wb = __builtin_convertvector(b, Floats);
    for (int64_t r = 0; r < rows; ++r) {
      first[r] += wa * *reinterpret_cast<const Floats*>(x + r * k + p);
      second[r] += wb * *reinterpret_cast<const Floats*>(x + r * k + p + kLanes);
    }
  }
  for (int64_t r = 0; r < rows; ++r) {
    float sum = total(first[r] + second[r]);
    for (int64_t i = p; i < k; ++i) sum += static_cast<float>(w[i]) * x[r * k + i];
    sums[r] = sum;
  }
}

// sums[r] = the dot product of packed 4-bit weights and row r of x, with a scale and a zero per group: a weight q is
// (q - 8) * scale + zero. group_sums[r * groups + g] are the sums of x's elements per group.
TT_CLONES void dot_int4(int64_t k, int64_t group_size, int64_t rows, const float* x, const float* group_sums,
                        const uint8_t* w, const float* scales, int64_t scale_step, float* sums) {
  const int64_t groups = k / group_size;
  float result[kRows] = {};
  for (int64_t g = 0; g < groups; ++g) {
    Floats s[kRows] = {};
    for (int64_t p = g * group_size; p < (g + 1) * group_size; p += kPacked) {
      UnsignedBytes bytes;
      std::memcpy(&bytes, w + p / 2, kLanes);
      const UnsignedBytes low_bits = bytes & 15, high_bits = bytes >> 4;
      const Floats low = __builtin_convertvector(low_bits, Floats), high = __builtin_convertvector(high_bits, Floats);
      for (int64_t r = 0; r < rows; ++r) {
        s[r] += low * *reinterpret_cast<const Floats*>(x + r * k + p);
        s[r] += high * *reinterpret_cast<const Floats*>(x + r * k + p + kLanes);
      }
    }
    const float scale = scales[g * scale_step], zero = scales[g * scale_step + 1];
    for (int64_t r = 0; r < rows; ++r) {
      result[r] += scale * total(s[r]) + (zero - 8 * scale) * group_sums[r * groups + g];
    }
  }
  for (int64_t r = 0; r < rows; ++r) sums[r] = result[r];
}

// Calls f(first row, rows, column) for pieces of an m x n result, on the thread pool.
template <typename F>
void for_pieces(int64_t m, int64_t n, int64_t k, F&& f) {
  const int64_t blocks = (m + kRows - 1) / kRows;
  parallel_for(n, std::max<int64_t>(1, (int64_t{1} << 15) / std::max<int64_t>(k * m, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t j = begin; j < end; ++j) {
                   for (int64_t b = 0; b < blocks; ++b) f(b * kRows, std::min<int64_t>(kRows, m - b * kRows), j);
                 }
               });
}

Tensor float_result(const Tensor& out) {
  return out.dtype() == DType::kFloat32 ? out : empty(out.sizes(), DType::kFloat32, out.device());
}

}  // namespace

void int8_weight_mm(const Tensor& input, const Tensor& weight, const Tensor& scales, Tensor& out) {
  const int64_t n = weight.size(0), k = weight.size(1), m = k ? input.numel() / k : 0;
  const Tensor x = contiguous_as(input, DType::kFloat32), w = contiguous_as(weight, DType::kInt8);
  const Tensor s = numbers(scales, n, "scales");
  const Tensor result = float_result(out);
  if (k == 0) {
    std::fill_n(result.data_as<float>(), result.numel(), 0.0f);
  } else {
    for_pieces(m, n, k, [&](int64_t row, int64_t rows, int64_t j) {
      float sums[kRows];
      dot_int8(k, rows, x.data_as<const float>() + row * k, w.data_as<const int8_t>() + j * k, sums);
      for (int64_t r = 0; r < rows; ++r) result.data_as<float>()[(row + r) * n + j] = sums[r] * s.data_as<float>()[j];
    });
  }
  if (!result.same(out)) copy(result, out);
}

void int4_pack(const Tensor& weight, Tensor& out) {
  const int64_t n = weight.size(0), k = weight.size(1);
  const Tensor w = contiguous_as(weight, DType::kInt32);
  const int32_t* from = w.data_as<const int32_t>();
  uint8_t* to = out.data_as<uint8_t>();
  parallel_for(n * k / kPacked, 512, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      for (int64_t i = 0; i < kLanes; ++i) {
        const int32_t low = from[b * kPacked + i] & 15, high = from[b * kPacked + kLanes + i] & 15;
        to[b * kLanes + i] = static_cast<uint8_t>(low | high << 4);
      }
    }
  });
}

void int4_weight_mm(const Tensor& input, const Tensor& weight, int64_t group_size, const Tensor& scales_and_zeros,
                    Tensor& out) {
  const int64_t n = weight.size(0), k = input.size(1), m = input.size(0);
  const Tensor x = contiguous_as(input, DType::kFloat32), w = contiguous_as(weight, DType::kUInt8);
  const Tensor s = contiguous_as(scales_and_zeros, DType::kFloat32);  // k / group_size, n, 2
  const int64_t groups = k / group_size;
  Tensor group_sums = empty(Sizes{m * groups}, DType::kFloat32, x.device());
  for (int64_t g = 0; g < m * groups; ++g) {
    float sum = 0;
    for (int64_t i = 0; i < group_size; ++i) sum += x.data_as<const float>()[g * group_size + i];
    group_sums.data_as<float>()[g] = sum;
  }
  const Tensor result = float_result(out);
  for_pieces(m, n, k, [&](int64_t row, int64_t rows, int64_t j) {
    float sums[kRows];
    dot_int4(k, group_size, rows, x.data_as<const float>() + row * k, group_sums.data_as<float>() + row * groups,
             w.data_as<const uint8_t>() + j * k / 2, s.data_as<const float>() + j * 2, n * 2, sums);
    for (int64_t r = 0; r < rows; ++r) result.data_as<float>()[(row + r) * n + j] = sums[r];
  });
  if (!result.same(out)) copy(result, out);
}

}  // namespace tt::cpu
