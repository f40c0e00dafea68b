#include "kernels/cpu/quantized/weight_blocked.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/functional/function_ref.h"
#include "engine/device/parallel.h"
#include "kernels/cpu/iteration/transpose_avx512.h"

namespace tt::cpu {
namespace {

constexpr int kLanes = 16;
constexpr int kColumns = 64;     // of a panel
constexpr int kRows = 6;         // of x, whose sums stay in registers
constexpr int64_t kDepth = 128;  // of k: a panel of this depth stays in the L1 cache
constexpr int64_t kChunk = 120;  // rows for which a panel is converted, and whose sums stay in the L2 cache
constexpr int kMaxVectors = kColumns / kLanes;

#define TT_V4 [[gnu::target("arch=x86-64-v4")]]

TT_V4 inline __mmask16 first_lanes(int64_t n) {
  return n >= kLanes ? 0xffff : static_cast<__mmask16>((1 << std::max<int64_t>(n, 0)) - 1);
}
TT_V4 inline __mmask64 first_bytes(int64_t n) { return n >= 64 ? ~__mmask64{0} : (__mmask64{1} << n) - 1; }

// Loads up to 64 bytes of each of up to 16 rows and transposes them: vector d has bytes 4 * d to 4 * d + 3 of each row.
TT_V4 inline void load_rows(int64_t rows, int64_t bytes, const void* from, int64_t step, __m512i (&r)[16]) {
  const auto* at = static_cast<const char*>(from);
  const __mmask64 mask = first_bytes(bytes);
#pragma GCC unroll 16
  for (int j = 0; j < 16; ++j) r[j] = _mm512_maskz_loadu_epi8(j < rows ? mask : 0, at + (j < rows ? j : 0) * step);
  transpose(r);
}

// Converts `depth` <= kDepth elements of up to 16 rows: to[p * step + j] for j < 16.
TT_V4 void convert_int8(int64_t rows, int64_t depth, const int8_t* w, int64_t k, const float* scales, float* to,
                        int64_t step) {
  const __m512 scale = _mm512_maskz_loadu_ps(first_lanes(rows), scales);
  for (int64_t p = 0; p < depth; p += 64) {
    __m512i r[16];
    load_rows(rows, depth - p, w + p, k, r);
    const int64_t end = std::min<int64_t>(64, depth - p);
    float* at = to + p * step;
#pragma GCC unroll 16
    for (int d = 0; d < 16; ++d) {
#pragma GCC unroll 4
      for (int e = 0; e < 4; ++e) {
        const __m512i q = _mm512_srai_epi32(_mm512_slli_epi32(r[d], 24 - 8 * e), 24);
        if (4 * d + e < end) _mm512_storeu_ps(at + (4 * d + e) * step, _mm512_mul_ps(_mm512_cvtepi32_ps(q), scale));
      }
    }
  }
}

// The same of packed weights of 4 bits; depth and the size of a group are multiples of kPackedWeights.
TT_V4 void convert_int4(int64_t rows, int64_t begin, int64_t depth, const Int4Row& row, float* to, int64_t step) {
  const __m512i evens = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const __m512i odds = _mm512_add_epi32(evens, _mm512_set1_epi32(1));
  const __m512i low_bits = _mm512_set1_epi32(15), middle = _mm512_set1_epi32(8);
  __m512i r[16];
  load_rows(rows, depth / 2, row.weights + begin / 2, row.k / 2, r);
  for (int block = 0; block < depth / kPackedWeights; ++block) {
    const float* at = row.scales + (begin + block * kPackedWeights) / row.group_size * row.step;
    const __m512 a = _mm512_maskz_loadu_ps(first_lanes(2 * rows), at);
    const __m512 b = _mm512_maskz_loadu_ps(first_lanes(2 * rows - kLanes), at + (2 * rows > kLanes ? kLanes : 0));
    const __m512 scale = _mm512_permutex2var_ps(a, evens, b), zero = _mm512_permutex2var_ps(a, odds, b);
    float* out = to + block * kPackedWeights * step;
#pragma GCC unroll 4
    for (int d = 0; d < 4; ++d) {
#pragma GCC unroll 8
      for (int e = 0; e < 8; ++e) {
        const __m512i q =
            _mm512_sub_epi32(_mm512_and_epi32(_mm512_srli_epi32(r[4 * block + d], 4 * e), low_bits), middle);
        const int p = 4 * d + e / 2 + (e % 2) * kLanes;
        _mm512_storeu_ps(out + p * step, _mm512_fmadd_ps(_mm512_cvtepi32_ps(q), scale, zero));
      }
    }
  }
}

// Computes or adds sums[i * kColumns + j] over `depth` elements for kHeight rows and kVectors * 16 columns.
template <int kHeight, int kVectors>
TT_V4 void tile(bool add, int64_t depth, const float* x, int64_t x_step, const float* w, float* sums) {
  __m512 s[kHeight][kVectors];
#pragma GCC unroll 6
  for (int i = 0; i < kHeight; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      s[i][v] = add ? _mm512_loadu_ps(sums + i * kColumns + v * kLanes) : _mm512_setzero_ps();
    }
  }
  for (int64_t p = 0; p < depth; ++p, w += kVectors * kLanes) {
    __m512 y[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) y[v] = _mm512_loadu_ps(w + v * kLanes);
#pragma GCC unroll 6
    for (int i = 0; i < kHeight; ++i) {
      const __m512 z = _mm512_set1_ps(x[i * x_step + p]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) s[i][v] = _mm512_fmadd_ps(z, y[v], s[i][v]);
    }
  }
#pragma GCC unroll 6
  for (int i = 0; i < kHeight; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) _mm512_storeu_ps(sums + i * kColumns + v * kLanes, s[i][v]);
  }
}

using Tile = decltype(&tile<1, 1>);

template <size_t... kIndex>
constexpr std::array<Tile, sizeof...(kIndex)> tiles(std::index_sequence<kIndex...>) {
  return {&tile<kIndex / kMaxVectors + 1, kIndex % kMaxVectors + 1>...};
}

// Of (rows, vectors): [(rows - 1) * kMaxVectors + vectors - 1].
constexpr auto kTiles = tiles(std::make_index_sequence<static_cast<size_t>(kRows) * kMaxVectors>());

// Converts up to 16 rows of the weight from `column`, elements [p, p + depth).
using Convert =
    absl::FunctionRef<void(int64_t column, int64_t rows, int64_t p, int64_t depth, float* to, int64_t step)>;

void multiply_panel(int64_t rows, int64_t column, int64_t columns, int64_t k, const float* x, float* sums,
                    Convert convert) {
  alignas(64) float panel[kDepth * kColumns];
  const int vectors = static_cast<int>((columns + kLanes - 1) / kLanes);
  for (int64_t p = 0; p < k; p += kDepth) {
    const int64_t depth = std::min(kDepth, k - p);
    for (int v = 0; v < vectors; ++v) {
      const int64_t width = std::min<int64_t>(kLanes, columns - v * kLanes);
      convert(column + v * kLanes, width, p, depth, panel + v * kLanes, static_cast<int64_t>(vectors) * kLanes);
    }
    for (int64_t i = 0; i < rows; i += kRows) {
      const int64_t height = std::min<int64_t>(kRows, rows - i);
      kTiles[(height - 1) * kMaxVectors + vectors - 1](p > 0, depth, x + i * k + p, k, panel, sums + i * kColumns);
    }
  }
}

void multiply(int64_t m, int64_t n, int64_t k, const float* x, float* out, Convert convert) {
  const int64_t panels = (n + kColumns - 1) / kColumns, chunks = (m + kChunk - 1) / kChunk;
  const int64_t grain = std::max<int64_t>(1, (int64_t{1} << 18) / (std::min(kChunk, m) * kColumns * k));
  parallel_for(chunks * panels, grain, [&](int64_t begin, int64_t end) {
    alignas(64) float sums[kChunk * kColumns];
    for (int64_t task = begin; task < end; ++task) {  // a chunk stays in the L2 cache
      const int64_t row = task / panels * kChunk, column = task % panels * kColumns;
      const int64_t rows = std::min(kChunk, m - row), columns = std::min<int64_t>(kColumns, n - column);
      multiply_panel(rows, column, columns, k, x + row * k, sums, convert);
      for (int64_t i = 0; i < rows; ++i) std::copy_n(sums + i * kColumns, columns, out + (row + i) * n + column);
    }
  });
}

#undef TT_V4

}  // namespace

void multiply_int8(int64_t m, int64_t n, int64_t k, const float* x, const int8_t* w, const float* scales, float* out) {
  multiply(m, n, k, x, out, [&](int64_t column, int64_t rows, int64_t p, int64_t depth, float* to, int64_t step) {
    convert_int8(rows, depth, w + column * k + p, k, scales + column, to, step);
  });
}

void multiply_int4(int64_t m, int64_t n, const Int4Row& first, const float* x, float* out) {
  multiply(m, n, first.k, x, out, [&](int64_t column, int64_t rows, int64_t p, int64_t depth, float* to, int64_t step) {
    const Int4Row row{first.k, first.group_size, first.weights + column * first.k / 2, first.scales + column * 2,
                      first.step};
    convert_int4(rows, p, depth, row, to, step);
  });
}

}  // namespace tt::cpu

#else

namespace tt::cpu {

void multiply_int8(int64_t, int64_t, int64_t, const float*, const int8_t*, const float*, float*) {}
void multiply_int4(int64_t, int64_t, const Int4Row&, const float*, float*) {}

}  // namespace tt::cpu

#endif
