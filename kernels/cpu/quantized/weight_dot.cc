#include "kernels/cpu/quantized/weight_dot.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/iteration/has_avx512.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tt::cpu {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

struct Loops {
  void (*int8)(int rows, int64_t k, const float* x, const int8_t* w, float* sums);
  void (*int4)(int rows, const Int4Row& row, const float* x, const float* group_sums, float* sums);
  void (*range)(int64_t n, const float* x, float* min, float* max);
  void (*quantize)(int64_t n, const float* x, float inverse, float zero_point, float max, uint8_t* to);
};

namespace portable {

void int8(int rows, int64_t k, const float* x, const int8_t* w, float* sums) {
  for (int r = 0; r < rows; ++r) {
    float sum = 0;
    for (int64_t p = 0; p < k; ++p) sum += static_cast<float>(w[p]) * x[r * k + p];
    sums[r] = sum;
  }
}

void int4(int rows, const Int4Row& row, const float* x, const float* group_sums, float* sums) {
  const int64_t groups = row.k / row.group_size;
  for (int r = 0; r < rows; ++r) {
    float result = 0;
    for (int64_t g = 0; g < groups; ++g) {
      float sum = 0;
      for (int64_t p = g * row.group_size; p < (g + 1) * row.group_size; p += kPackedWeights) {
        for (int64_t i = 0; i < kPackedWeights / 2; ++i) {
          const uint8_t byte = row.weights[p / 2 + i];
          sum += static_cast<float>(byte & 15) * x[r * row.k + p + i];
          sum += static_cast<float>(byte >> 4) * x[r * row.k + p + kPackedWeights / 2 + i];
        }
      }
      const float scale = row.scales[g * row.step], zero = row.scales[g * row.step + 1];
      result += scale * sum + (zero - 8 * scale) * group_sums[r * groups + g];
    }
    sums[r] = result;
  }
}

void range(int64_t n, const float* x, float* min, float* max) {
  bool unordered = false;
  for (int64_t i = 0; i < n; ++i) {
    *min = x[i] < *min ? x[i] : *min;
    *max = x[i] > *max ? x[i] : *max;
    unordered |= std::isnan(x[i]);
  }
  if (unordered) *min = *max = kNaN;
}

void quantize(int64_t n, const float* x, float inverse, float zero_point, float max, uint8_t* to) {
  for (int64_t i = 0; i < n; ++i) {
    const float moved = std::rint(x[i] * inverse) + zero_point;
    to[i] = static_cast<uint8_t>(static_cast<int32_t>(std::min(moved > 0 ? moved : 0.0f, max)));
  }
}

}  // namespace portable

#if defined(__x86_64__)

#define TT_V4 [[gnu::target("arch=x86-64-v4")]]

namespace avx512 {

TT_V4 inline __mmask16 first(int64_t n) { return n >= 16 ? 0xffff : static_cast<__mmask16>((1 << n) - 1); }

template <int kRows>
TT_V4 void int8_rows(int64_t k, const float* x, const int8_t* w, float* sums) {
  __m512 s[kRows], t[kRows];  // two sums, so that additions do not wait for each other
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) s[r] = t[r] = _mm512_setzero_ps();
  for (int64_t p = 0; p < k; p += 32) {
    const __mmask16 mask = first(k - p), next = k - p > 16 ? first(k - p - 16) : 0;
    const __m512 v = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(mask, w + p)));
    const __m512 u = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(next, w + p + 16)));
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      s[r] = _mm512_fmadd_ps(v, _mm512_maskz_loadu_ps(mask, x + r * k + p), s[r]);
      t[r] = _mm512_fmadd_ps(u, _mm512_maskz_loadu_ps(next, x + r * k + p + 16), t[r]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) sums[r] = _mm512_reduce_add_ps(_mm512_add_ps(s[r], t[r]));
}

template <int kRows>
TT_V4 void int4_rows(const Int4Row& row, const float* x, const float* group_sums, float* sums) {
  const int64_t groups = row.k / row.group_size;
  const __m128i low_bits = _mm_set1_epi8(15);
  __m512 all[kRows];
  float rest[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    all[r] = _mm512_setzero_ps();
    rest[r] = 0;
  }
  for (int64_t g = 0; g < groups; ++g) {
    __m512 s[kRows], t[kRows];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) s[r] = t[r] = _mm512_setzero_ps();
    for (int64_t p = g * row.group_size; p < (g + 1) * row.group_size; p += kPackedWeights) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(row.weights + p / 2));
      const __m128i high_bytes = _mm_and_si128(_mm_srli_epi16(bytes, 4), low_bits);
      const __m512 low = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_and_si128(bytes, low_bits)));
      const __m512 high = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(high_bytes));
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        s[r] = _mm512_fmadd_ps(low, _mm512_loadu_ps(x + r * row.k + p), s[r]);
        t[r] = _mm512_fmadd_ps(high, _mm512_loadu_ps(x + r * row.k + p + 16), t[r]);
      }
    }
    const float scale = row.scales[g * row.step], shift = row.scales[g * row.step + 1] - 8 * scale;
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      all[r] = _mm512_fmadd_ps(_mm512_set1_ps(scale), _mm512_add_ps(s[r], t[r]), all[r]);
      rest[r] += shift * group_sums[r * groups + g];
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) sums[r] = _mm512_reduce_add_ps(all[r]) + rest[r];
}

void int8(int rows, int64_t k, const float* x, const int8_t* w, float* sums) {
  constexpr decltype(&int8_rows<1>) kFunctions[] = {&int8_rows<1>, &int8_rows<2>, &int8_rows<3>, &int8_rows<4>,
                                                    &int8_rows<5>, &int8_rows<6>, &int8_rows<7>, &int8_rows<8>};
  kFunctions[rows - 1](k, x, w, sums);
}

void int4(int rows, const Int4Row& row, const float* x, const float* group_sums, float* sums) {
  constexpr decltype(&int4_rows<1>) kFunctions[] = {&int4_rows<1>, &int4_rows<2>, &int4_rows<3>, &int4_rows<4>,
                                                    &int4_rows<5>, &int4_rows<6>, &int4_rows<7>, &int4_rows<8>};
  kFunctions[rows - 1](row, x, group_sums, sums);
}

TT_V4 void range(int64_t n, const float* x, float* min, float* max) {
  __m512 low = _mm512_set1_ps(*min), high = _mm512_set1_ps(*max);
  __mmask16 unordered = 0;
  for (int64_t i = 0; i < n; i += 16) {
    const __m512 v = _mm512_mask_loadu_ps(_mm512_set1_ps(*min), first(n - i), x + i);
    low = _mm512_min_ps(v, low);
    const __m512 w = _mm512_mask_loadu_ps(_mm512_set1_ps(*max), first(n - i), x + i);
    high = _mm512_max_ps(w, high);
    unordered |= _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
  }
  *min = unordered ? kNaN : _mm512_reduce_min_ps(low);
  *max = unordered ? kNaN : _mm512_reduce_max_ps(high);
}

TT_V4 void quantize(int64_t n, const float* x, float inverse, float zero_point, float max, uint8_t* to) {
  const __m512 factor = _mm512_set1_ps(inverse), point = _mm512_set1_ps(zero_point), limit = _mm512_set1_ps(max);
  for (int64_t i = 0; i < n; i += 16) {
    const __mmask16 mask = first(n - i);
    const __m512 rounded = _mm512_roundscale_ps(_mm512_mul_ps(_mm512_maskz_loadu_ps(mask, x + i), factor),
                                                _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const __m512 moved = _mm512_add_ps(rounded, point);
    const __m512 limited = _mm512_min_ps(_mm512_max_ps(moved, _mm512_setzero_ps()), limit);
    _mm512_mask_cvtusepi32_storeu_epi8(to + i, mask, _mm512_cvtps_epi32(limited));
  }
}

}  // namespace avx512

#undef TT_V4

Loops choose() {
  if (has_avx512()) return {&avx512::int8, &avx512::int4, &avx512::range, &avx512::quantize};
  return {&portable::int8, &portable::int4, &portable::range, &portable::quantize};
}

#else

Loops choose() { return {&portable::int8, &portable::int4, &portable::range, &portable::quantize}; }

#endif

const Loops& loops() {
  static const Loops chosen = choose();
  return chosen;
}

}  // namespace

void dot_int8(int rows, int64_t k, const float* x, const int8_t* w, float* sums) { loops().int8(rows, k, x, w, sums); }

void dot_int4(int rows, const Int4Row& row, const float* x, const float* group_sums, float* sums) {
  loops().int4(rows, row, x, group_sums, sums);
}

void extend_range(int64_t n, const float* x, float* min, float* max) { loops().range(n, x, min, max); }

void quantize_row(int64_t n, const float* x, float inverse, float zero_point, float max, uint8_t* to) {
  loops().quantize(n, x, inverse, zero_point, max, to);
}

}  // namespace tt::cpu
