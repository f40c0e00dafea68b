#include "kernels/cpu/quantized/int8_dot.h"

#include <algorithm>

#include "engine/device/parallel.h"
#include "engine/tensor/tensor.h"
#include "kernels/cpu/iteration/has_avx512.h"
#include "kernels/cpu/iteration/isa.h"
#include "kernels/cpu/loops/clones.h"
#include "kernels/cpu/quantized/int8_blocked.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tt::cpu {
namespace {

constexpr int kColumns = 16;  // of a block
constexpr int kTileRows = 4, kTileColumns = 4;
constexpr int64_t kChunkBytes = int64_t{256} << 10;  // of rows of a, which stay in the L2 cache
constexpr int64_t kMaxRows = 64;                     // of a block
constexpr int64_t kFewRows = 12;                     // up to which packing the weights costs more than it saves
constexpr int64_t kMinColumns = 8;                   // from which vectors of 16 columns are full enough
constexpr int64_t kPackedBytes = int64_t{1} << 20;   // of weights that are packed at a time, per thread

// Computes sums[i][j] for up to kTileRows rows and kTileColumns columns, and the sums of b's rows if `weights` is not
// null.
using TileFunction = void (*)(int rows, int columns, int64_t k, const uint8_t* a, int64_t a_step, const int8_t* b,
                              int64_t b_step, int32_t* sums, int64_t step, int32_t* weights);

TT_CLONES int32_t sum_of(int64_t n, const int8_t* x) {
  int32_t sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i];
  return sum;
}

TT_CLONES void tile_portable(int rows, int columns, int64_t k, const uint8_t* a, int64_t a_step, const int8_t* b,
                             int64_t b_step, int32_t* sums, int64_t step, int32_t* weights) {
  for (int j = 0; j < columns; ++j) {
    const int8_t* y = b + j * b_step;
    for (int i = 0; i < rows; ++i) {
      const uint8_t* x = a + i * a_step;
      uint32_t sum = 0;  // wraps around
      for (int64_t p = 0; p < k; ++p)
        sum += static_cast<uint32_t>(static_cast<int16_t>(x[p]) * static_cast<int16_t>(y[p]));
      sums[i * step + j] = static_cast<int32_t>(sum);
    }
    if (weights) weights[j] = sum_of(k, y);
  }
}

#if defined(__x86_64__)

#define TT_VNNI [[gnu::target("arch=x86-64-v4,avx512vnni")]]

// The sums of the elements of four vectors.
TT_VNNI inline __m128i totals(__m512i a, __m512i b, __m512i c, __m512i d) {
  const __m512i ab = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
  const __m512i cd = _mm512_add_epi32(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
  const __m512i all = _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
  const __m256i half = _mm256_add_epi32(_mm512_castsi512_si256(all), _mm512_extracti64x4_epi64(all, 1));
  return _mm_add_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}

template <int kRows, bool kWeights>
TT_VNNI void tile_vnni(int64_t k, const uint8_t* a, int64_t a_step, const int8_t* b, int64_t b_step, int32_t* sums,
                       int64_t step, int32_t* weights) {
  __m512i s[kRows][kTileColumns], w[kTileColumns];
  const __m512i ones = _mm512_set1_epi8(1);
#pragma GCC unroll 4
  for (int j = 0; j < kTileColumns; ++j) {
    w[j] = _mm512_setzero_si512();
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) s[i][j] = _mm512_setzero_si512();
  }
  for (int64_t p = 0; p < k; p += 64) {
    const __mmask64 mask = k - p >= 64 ? ~__mmask64{0} : (__mmask64{1} << (k - p)) - 1;
    __m512i y[kTileColumns];
#pragma GCC unroll 4
    for (int j = 0; j < kTileColumns; ++j) {
      y[j] = _mm512_maskz_loadu_epi8(mask, b + j * b_step + p);
      if constexpr (kWeights) w[j] = _mm512_dpbusd_epi32(w[j], ones, y[j]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) {
      const __m512i x = _mm512_maskz_loadu_epi8(mask, a + i * a_step + p);
#pragma GCC unroll 4
      for (int j = 0; j < kTileColumns; ++j) s[i][j] = _mm512_dpbusd_epi32(s[i][j], x, y[j]);
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(sums + i * step), totals(s[i][0], s[i][1], s[i][2], s[i][3]));
  }
  if constexpr (kWeights) _mm_storeu_si128(reinterpret_cast<__m128i*>(weights), totals(w[0], w[1], w[2], w[3]));
}

template <bool kWeights>
void vnni_rows(int rows, int64_t k, const uint8_t* a, int64_t a_step, const int8_t* b, int64_t b_step, int32_t* sums,
               int64_t step, int32_t* weights) {
  switch (rows) {
    case 1: return tile_vnni<1, kWeights>(k, a, a_step, b, b_step, sums, step, weights);
    case 2: return tile_vnni<2, kWeights>(k, a, a_step, b, b_step, sums, step, weights);
    case 3: return tile_vnni<3, kWeights>(k, a, a_step, b, b_step, sums, step, weights);
    default: return tile_vnni<4, kWeights>(k, a, a_step, b, b_step, sums, step, weights);
  }
}

void tile_with_vnni(int rows, int columns, int64_t k, const uint8_t* a, int64_t a_step, const int8_t* b, int64_t b_step,
                    int32_t* sums, int64_t step, int32_t* weights) {
  if (columns < kTileColumns) {
    return tile_portable(rows, columns, k, a, a_step, b, b_step, sums, step, weights);
  }
  if (weights) return vnni_rows<true>(rows, k, a, a_step, b, b_step, sums, step, weights);
  vnni_rows<false>(rows, k, a, a_step, b, b_step, sums, step, nullptr);
}

#undef TT_VNNI

#define TT_AVX2 [[gnu::target("arch=x86-64-v3")]]

TT_AVX2 inline int32_t total(__m256i v) {
  const __m128i half = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  const __m128i pair = _mm_add_epi32(half, _mm_unpackhi_epi64(half, half));
  return _mm_cvtsi128_si32(_mm_add_epi32(pair, _mm_shuffle_epi32(pair, 1)));
}

// Products of 16 bits, of which two are added to each 32-bit sum: products of 8 bits (vpmaddubsw) would saturate.
template <int kRows>
TT_AVX2 void tile_avx2(int64_t k, const uint8_t* a, int64_t a_step, const int8_t* b, int64_t b_step, int32_t* sums,
                       int64_t step) {
  constexpr int64_t kElements = 16;
  __m256i s[kRows][kTileColumns];
#pragma GCC unroll 2
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kTileColumns; ++j) s[i][j] = _mm256_setzero_si256();
  }
  int64_t p = 0;
  for (; p + kElements <= k; p += kElements) {
    __m256i x[kRows];
#pragma GCC unroll 2
    for (int i = 0; i < kRows; ++i) {
      x[i] = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(a + i * a_step + p)));
    }
#pragma GCC unroll 4
    for (int j = 0; j < kTileColumns; ++j) {
      const __m256i y = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(b + j * b_step + p)));
#pragma GCC unroll 2
      for (int i = 0; i < kRows; ++i) s[i][j] = _mm256_add_epi32(s[i][j], _mm256_madd_epi16(x[i], y));
    }
  }
#pragma GCC unroll 2
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kTileColumns; ++j) {
      int32_t sum = total(s[i][j]);
      for (int64_t rest = p; rest < k; ++rest) sum += a[i * a_step + rest] * b[j * b_step + rest];
      sums[i * step + j] = sum;
    }
  }
}

void tile_with_avx2(int rows, int columns, int64_t k, const uint8_t* a, int64_t a_step, const int8_t* b, int64_t b_step,
                    int32_t* sums, int64_t step, int32_t* weights) {
  if (columns < kTileColumns) {
    return tile_portable(rows, columns, k, a, a_step, b, b_step, sums, step, weights);
  }
  for (int i = 0; i < rows; i += 2) {
    const auto tile = rows - i > 1 ? &tile_avx2<2> : &tile_avx2<1>;
    tile(k, a + i * a_step, a_step, b, b_step, sums + i * step, step);
  }
  for (int j = 0; weights && j < columns; ++j) weights[j] = sum_of(k, b + j * b_step);
}

#undef TT_AVX2

bool has_avx2() { return allows_avx2() && __builtin_cpu_supports("avx2"); }
bool has_vnni() { return has_avx512() && __builtin_cpu_supports("avx512vnni"); }

#else

constexpr TileFunction tile_with_vnni = &tile_portable, tile_with_avx2 = &tile_portable;
bool has_vnni() { return false; }
bool has_avx2() { return false; }

#endif

constexpr int64_t kChunk = kMaxRows / kBlockedRows * kBlockedRows;

// Multiplies all rows with `count` packed panels, from the number `first` on.
void multiply_panels(const Int8Product& p, int64_t first, int64_t count, const int8_t* packed, const int32_t* weights,
                     absl::FunctionRef<void(const Int8Block&)> store) {
  const int64_t bytes = packed_bytes(kPanelColumns, p.k), chunks = (p.m + kChunk - 1) / kChunk;
  const int64_t grain = std::max<int64_t>(1, (int64_t{1} << 21) / (bytes * std::min(kChunk, p.m)));
  parallel_for(count * chunks, grain, [&](int64_t begin, int64_t end) {
    alignas(64) int32_t sums[kChunk * kPanelColumns];
    for (int64_t task = begin; task < end; ++task) {
      const int64_t panel = task % count, row = task / count * kChunk, rows = std::min(kChunk, p.m - row);
      const int64_t column = (first + panel) * kPanelColumns, columns = std::min<int64_t>(kPanelColumns, p.n - column);
      multiply_panel(rows, columns, p.k, p.a + row * p.a_step, p.a_step, packed + panel * bytes, sums);
      store({row, rows, column, columns, sums, kPanelColumns, weights + panel * kPanelColumns});
    }
  });
}

// Packs `count` panels of weights.
void pack_panels(int64_t n, int64_t k, const int8_t* b, int64_t b_step, int64_t first, int64_t count, int8_t* to,
                 int32_t* weights) {
  const int64_t bytes = packed_bytes(kPanelColumns, k);
  parallel_for(count, std::max<int64_t>(1, (int64_t{1} << 17) / bytes), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t column = (first + i) * kPanelColumns;
      pack_panel(std::min<int64_t>(kPanelColumns, n - column), k, b + column * b_step, b_step, to + i * bytes,
                 weights + i * kPanelColumns);
    }
  });
}

// Packs some panels of weights at a time, then multiplies each with all rows.
void blocked_product(const Int8Product& p, absl::FunctionRef<void(const Int8Block&)> store) {
  const int64_t bytes = packed_bytes(kPanelColumns, p.k), all = (p.n + kPanelColumns - 1) / kPanelColumns;
  const int64_t panels = std::clamp<int64_t>(kPackedBytes * num_threads() / bytes, 1, all);
  Tensor packed = empty(Sizes{panels * bytes}, DType::kInt8, Device{});
  Tensor totals = empty(Sizes{panels * kPanelColumns}, DType::kInt32, Device{});
  auto* to = packed.data_as<int8_t>();
  auto* weights = totals.data_as<int32_t>();
  for (int64_t first = 0; first < all; first += panels) {
    const int64_t count = std::min(panels, all - first);
    pack_panels(p.n, p.k, p.b, p.b_step, first, count, to, weights);
    multiply_panels(p, first, count, to, weights, store);
  }
}

bool is_fast() {
  static const bool fast = has_vnni();
  return fast;
}

TileFunction choose_tile() {
  if (is_fast()) return &tile_with_vnni;
  return has_avx2() ? &tile_with_avx2 : &tile_portable;
}

int64_t num_panels(int64_t n) { return (n + kPanelColumns - 1) / kPanelColumns; }

}  // namespace

bool uses_packed(int64_t m, int64_t n, int64_t k) { return is_fast() && m > 0 && n >= kMinColumns && k > 0; }

int64_t packed_weights_bytes(int64_t n, int64_t k) {
  return num_panels(n) * (packed_bytes(kPanelColumns, k) + kPanelColumns * static_cast<int64_t>(sizeof(int32_t)));
}

void pack_weights(int64_t n, int64_t k, const int8_t* b, int64_t b_step, int8_t* to) {
  // The panels have a multiple of 64 bytes.
  auto* weights = reinterpret_cast<int32_t*>(to + num_panels(n) * packed_bytes(kPanelColumns, k));
  pack_panels(n, k, b, b_step, 0, num_panels(n), to, weights);
}

void int8_product(const Int8Product& p, absl::FunctionRef<void(const Int8Block&)> store) {
  if (p.m == 0 || p.n == 0) return;
  if (p.packed) {
    const int64_t panels = num_panels(p.n);
    const auto* weights = reinterpret_cast<const int32_t*>(p.packed + panels * packed_bytes(kPanelColumns, p.k));
    return multiply_panels(p, 0, panels, p.packed, weights, store);
  }
  if (is_fast() && p.m > kFewRows && p.n >= kMinColumns && p.k > 0) return blocked_product(p, store);
  static const TileFunction tile = choose_tile();
  const int64_t fitting = kChunkBytes / std::max<int64_t>(p.k, 1) / kTileRows * kTileRows;
  const int64_t chunk = std::clamp<int64_t>(fitting, kTileRows, kMaxRows);
  const int64_t chunks = (p.m + chunk - 1) / chunk, blocks = (p.n + kColumns - 1) / kColumns;
  const int64_t work = std::min(chunk, p.m) * kColumns * std::max<int64_t>(p.k, 1);
  parallel_for(chunks * blocks, std::max<int64_t>(1, (int64_t{1} << 18) / work), [&](int64_t begin, int64_t end) {
    alignas(64) int32_t sums[kMaxRows * kColumns];
    alignas(64) int32_t weights[kColumns];
    for (int64_t task = begin; task < end; ++task) {
      const int64_t row = task / blocks * chunk, column = task % blocks * kColumns;
      const int64_t rows = std::min(chunk, p.m - row), columns = std::min<int64_t>(kColumns, p.n - column);
      for (int64_t j = 0; j < columns; j += kTileColumns) {
        const int width = static_cast<int>(std::min<int64_t>(kTileColumns, columns - j));
        for (int64_t i = 0; i < rows; i += kTileRows) {
          tile(static_cast<int>(std::min<int64_t>(kTileRows, rows - i)), width, p.k, p.a + (row + i) * p.a_step,
               p.a_step, p.b + (column + j) * p.b_step, p.b_step, sums + i * kColumns + j, kColumns,
               i == 0 ? weights + j : nullptr);
        }
      }
      store({row, rows, column, columns, sums, kColumns, weights});
    }
  });
}

}  // namespace tt::cpu
