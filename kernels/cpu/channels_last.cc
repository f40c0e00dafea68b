#include "kernels/cpu/channels_last.h"

#include <immintrin.h>

#include <algorithm>

#include "engine/parallel.h"
#include "engine/rules/error.h"

namespace tt::cpu {
namespace {

// Transposes rows x columns of `from` into `to`; leading dimensions in elements.
template <typename T>
void transpose_scalar(const T* from, int64_t ld_from, T* to, int64_t ld_to, int64_t rows, int64_t columns) {
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = 0; i < rows; ++i) to[j * ld_to + i] = from[i * ld_from + j];
  }
}

// An 8 x 8 transpose of 32-bit elements in AVX2 registers.
[[gnu::target("avx2"), gnu::always_inline]] inline void transpose_8x8(const float* from, int64_t ld_from, float* to,
                                                                      int64_t ld_to) {
  __m256 r[8], t[8];
  for (int i = 0; i < 4; ++i) {  // rows i and i + 4 share a register: halves need no later exchange
    r[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(from + i * ld_from)),
                                _mm_loadu_ps(from + (i + 4) * ld_from), 1);
    r[i + 4] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(from + i * ld_from + 4)),
                                    _mm_loadu_ps(from + (i + 4) * ld_from + 4), 1);
  }
  for (int h = 0; h < 8; h += 4) {
    t[h] = _mm256_unpacklo_ps(r[h], r[h + 1]);
    t[h + 1] = _mm256_unpackhi_ps(r[h], r[h + 1]);
    t[h + 2] = _mm256_unpacklo_ps(r[h + 2], r[h + 3]);
    t[h + 3] = _mm256_unpackhi_ps(r[h + 2], r[h + 3]);
    _mm256_storeu_ps(to + h * ld_to, _mm256_shuffle_ps(t[h], t[h + 2], 0x44));
    _mm256_storeu_ps(to + (h + 1) * ld_to, _mm256_shuffle_ps(t[h], t[h + 2], 0xee));
    _mm256_storeu_ps(to + (h + 2) * ld_to, _mm256_shuffle_ps(t[h + 1], t[h + 3], 0x44));
    _mm256_storeu_ps(to + (h + 3) * ld_to, _mm256_shuffle_ps(t[h + 1], t[h + 3], 0xee));
  }
}

// Requires at least 8 rows and columns. What is left at the edges is done by tiles that overlap the last full ones.
[[gnu::target("avx2")]] void transpose_avx2(const float* from, int64_t ld_from, float* to, int64_t ld_to, int64_t rows,
                                            int64_t columns) {
  // Along the side with the longer stride first: its lines, often a power of two apart, compete for few cache sets.
  const bool down = ld_to > ld_from;
  const int64_t outer = down ? columns : rows, inner = down ? rows : columns;
  for (int64_t p = 0; p < outer; p += 8) {
    for (int64_t q = 0; q < inner; q += 8) {
      const int64_t p0 = std::min(p, outer - 8), q0 = std::min(q, inner - 8);
      const int64_t i = down ? q0 : p0, j = down ? p0 : q0;
      transpose_8x8(from + i * ld_from + j, ld_from, to + j * ld_to + i, ld_to);
    }
  }
}

template <typename T>
void transpose(const T* from, int64_t ld_from, T* to, int64_t ld_to, int64_t rows, int64_t columns) {
  static const bool avx2 = __builtin_cpu_supports("avx2");
  if constexpr (sizeof(T) == 4) {
    if (avx2 && rows >= 8 && columns >= 8) return transpose_avx2(from, ld_from, to, ld_to, rows, columns);
  }
  transpose_scalar(from, ld_from, to, ld_to, rows, columns);
}

template <typename T>
void run(const T* from, T* to, int64_t images, int64_t channels, int64_t space) {
  // Tiles whose both sides stay in the L1 cache; a tile's columns are a multiple of 16 rows of `to`.
  constexpr int64_t kTileRows = 64, kTileColumns = 64;
  const int64_t row_tiles = (channels + kTileRows - 1) / kTileRows;
  const int64_t column_tiles = (space + kTileColumns - 1) / kTileColumns;
  parallel_for(images * row_tiles * column_tiles, 8, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t image = task / (row_tiles * column_tiles) * channels * space;
      const int64_t i = task / column_tiles % row_tiles * kTileRows, j = task % column_tiles * kTileColumns;
      transpose(from + image + i * space + j, space, to + image + j * channels + i, channels,
                std::min(kTileRows, channels - i), std::min(kTileColumns, space - j));
    }
  });
}

}  // namespace

void transpose_images(const void* from, void* to, int64_t images, int64_t channels, int64_t space, int64_t item_bytes) {
  switch (item_bytes) {
    case 2: return run(static_cast<const uint16_t*>(from), static_cast<uint16_t*>(to), images, channels, space);
    case 4: return run(static_cast<const float*>(from), static_cast<float*>(to), images, channels, space);
    case 8: return run(static_cast<const uint64_t*>(from), static_cast<uint64_t*>(to), images, channels, space);
    default: fail(ErrorKind::kNotImplemented, "elements of ", item_bytes, " bytes have no channels-last form");
  }
}

}  // namespace tt::cpu
