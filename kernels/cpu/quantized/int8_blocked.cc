#include "kernels/cpu/quantized/int8_blocked.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "kernels/cpu/iteration/transpose_avx512.h"

namespace tt::cpu {
namespace {

constexpr int kLanes = 16;          // 32-bit sums of a vector
constexpr int kElements = 4;        // of k, which one instruction multiplies for each sum
constexpr int64_t kDepth = 512;     // of k: this part of a panel stays in the L1 cache
constexpr int64_t kPackDepth = 64;  // of k, which are packed at a time

#define TT_VNNI [[gnu::target("arch=x86-64-v4,avx512vnni")]]

int vectors_of(int64_t columns) { return static_cast<int>((columns + kLanes - 1) / kLanes); }

// Packs up to 16 rows of b, as one vector of each group.
TT_VNNI void pack_vector(int64_t columns, int64_t k, const int8_t* b, int64_t b_step, int vectors, int8_t* to,
                         int32_t* sums) {
  const __m512i ones = _mm512_set1_epi8(1);
  __m512i sum = _mm512_setzero_si512();
  for (int64_t p = 0; p < k; p += kPackDepth) {
    const __mmask64 mask = k - p >= kPackDepth ? ~__mmask64{0} : (__mmask64{1} << (k - p)) - 1;
    __m512i r[16];
#pragma GCC unroll 16
    for (int j = 0; j < 16; ++j)
      r[j] = _mm512_maskz_loadu_epi8(j < columns ? mask : 0, b + (j < columns ? j : 0) * b_step + p);
    transpose(r);
    const int64_t groups = std::min<int64_t>(16, (k - p + kElements - 1) / kElements);
    int8_t* at = to + p / kElements * vectors * 64;
#pragma GCC unroll 16
    for (int g = 0; g < 16; ++g) {
      if (g < groups) _mm512_storeu_si512(at + g * vectors * 64, r[g]);
      sum = _mm512_dpbusd_epi32(sum, ones, r[g]);
    }
  }
  _mm512_storeu_si512(sums, sum);
}

// Adds the products of one row with groups whose numbers are odd to sums of their own, because an instruction waits for
// the one before it with the same sum. Returns how many groups it has multiplied.
template <int kVectors>
TT_VNNI inline int64_t multiply_row(int64_t groups, const uint8_t* a, const int8_t* b, __m512i (&s)[kVectors]) {
  __m512i odd[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) odd[v] = _mm512_setzero_si512();
  int64_t g = 0;
  for (; g + 2 <= groups; g += 2, b += 2 * kVectors * 64) {
    int32_t four[2];
    std::memcpy(four, a + g * kElements, sizeof(four));
    const __m512i x = _mm512_set1_epi32(four[0]), y = _mm512_set1_epi32(four[1]);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) s[v] = _mm512_dpbusd_epi32(s[v], x, _mm512_loadu_si512(b + v * 64));
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      odd[v] = _mm512_dpbusd_epi32(odd[v], y, _mm512_loadu_si512(b + (kVectors + v) * 64));
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) s[v] = _mm512_add_epi32(s[v], odd[v]);
  return g;
}

// The sums of kRows rows and kVectors * 16 columns, over `groups` groups and `rest` < 4 more elements.
template <int kRows, int kVectors>
TT_VNNI void tile(bool add, int64_t groups, int64_t rest, const uint8_t* a, int64_t a_step, const int8_t* b,
                  int32_t* sums) {
  __m512i s[kRows][kVectors];
#pragma GCC unroll 6
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      s[i][v] = add ? _mm512_loadu_si512(sums + i * kPanelColumns + v * kLanes) : _mm512_setzero_si512();
    }
  }
  int64_t g = 0;
  if constexpr (kRows == 1) {
    g = multiply_row<kVectors>(groups, a, b, s[0]);
    b += g * kVectors * 64;
  }
  for (; g < groups; ++g, b += kVectors * 64) {
    __m512i y[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) y[v] = _mm512_loadu_si512(b + v * 64);
#pragma GCC unroll 6
    for (int i = 0; i < kRows; ++i) {
      int32_t four;
      std::memcpy(&four, a + i * a_step + g * kElements, sizeof(four));
      const __m512i x = _mm512_set1_epi32(four);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) s[i][v] = _mm512_dpbusd_epi32(s[i][v], x, y[v]);
    }
  }
  if (rest > 0) {
#pragma GCC unroll 6
    for (int i = 0; i < kRows; ++i) {
      int32_t last = 0;
      std::memcpy(&last, a + i * a_step + groups * kElements, rest);
      const __m512i x = _mm512_set1_epi32(last);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) s[i][v] = _mm512_dpbusd_epi32(s[i][v], x, _mm512_loadu_si512(b + v * 64));
    }
  }
#pragma GCC unroll 6
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) _mm512_storeu_si512(sums + i * kPanelColumns + v * kLanes, s[i][v]);
  }
}

#undef TT_VNNI

constexpr int kMaxVectors = kPanelColumns / kLanes;
using Tile = decltype(&tile<1, 1>);

template <size_t... kIndex>
constexpr std::array<Tile, sizeof...(kIndex)> tiles(std::index_sequence<kIndex...>) {
  return {&tile<kIndex / kMaxVectors + 1, kIndex % kMaxVectors + 1>...};
}

// Of (rows, vectors): [(rows - 1) * kMaxVectors + vectors - 1].
constexpr auto kTiles = tiles(std::make_index_sequence<static_cast<size_t>(kBlockedRows) * kMaxVectors>());

}  // namespace

int64_t packed_bytes(int64_t columns, int64_t k) { return (k + kElements - 1) / kElements * vectors_of(columns) * 64; }

void pack_panel(int64_t columns, int64_t k, const int8_t* b, int64_t b_step, int8_t* to, int32_t* sums) {
  const int vectors = vectors_of(columns);
  for (int v = 0; v < vectors; ++v) {
    pack_vector(std::min<int64_t>(kLanes, columns - v * kLanes), k, b + v * kLanes * b_step, b_step, vectors,
                to + v * 64, sums + v * kLanes);
  }
}

void multiply_panel(int64_t rows, int64_t columns, int64_t k, const uint8_t* a, int64_t a_step, const int8_t* packed,
                    int32_t* sums) {
  const int vectors = vectors_of(columns);
  for (int64_t p = 0; p < k; p += kDepth) {
    const int64_t depth = std::min(kDepth, k - p);
    const int8_t* b = packed + p / kElements * vectors * 64;
    // Tiles of about as many rows, because the last one would have too few sums to keep the processor busy.
    const int64_t tiles = (rows + kBlockedRows - 1) / kBlockedRows;
    for (int64_t t = 0; t < tiles; ++t) {
      const int64_t i = rows * t / tiles, height = rows * (t + 1) / tiles - i;
      kTiles[(height - 1) * kMaxVectors + vectors - 1](p > 0, depth / kElements, depth % kElements, a + i * a_step + p,
                                                       a_step, b, sums + i * kPanelColumns);
    }
  }
}

}  // namespace tt::cpu

#else

namespace tt::cpu {

int64_t packed_bytes(int64_t, int64_t) { return 0; }
void pack_panel(int64_t, int64_t, const int8_t*, int64_t, int8_t*, int32_t*) {}
void multiply_panel(int64_t, int64_t, int64_t, const uint8_t*, int64_t, const int8_t*, int32_t*) {}

}  // namespace tt::cpu

#endif
