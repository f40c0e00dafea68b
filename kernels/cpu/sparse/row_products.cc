#include "kernels/cpu/sparse/row_products.h"

#include <algorithm>
#include <cstring>

#include "engine/device/parallel.h"
#include "engine/tensor/tensor.h"
#include "kernels/common/math/complex.h"
#include "kernels/cpu/loops/clones.h"

namespace tt::cpu {
namespace {

constexpr int kBytes = 64;  // of a vector; compilers split it for narrower instruction sets

template <typename T, int kSize = kBytes>
struct Vectors {
  typedef T Vector __attribute__((vector_size(kSize)));
  typedef T Unaligned __attribute__((vector_size(kSize), aligned(alignof(T)), may_alias));
  static constexpr int kLanes = kSize / sizeof(T);
};

// A vector of one element is the element, which stays in a register.
template <typename T>
struct Vectors<T, sizeof(T)> {
  using Vector = T;
  using Unaligned = T;
  static constexpr int kLanes = 1;
};

template <typename T>
constexpr bool kHasVectors = std::is_same_v<T, float> || std::is_same_v<T, double>;

// The entries of a row of blocks.
struct Entries {
  const int64_t* col;
  int64_t begin, end;
};

// out[0, kVectors * lanes) = the sum over the entries of values times rows of `other`; `row` is the row within blocks.
template <int kVectors, bool kBlocks, typename T>
[[gnu::always_inline]] inline void sum_vectors(const Entries& e, const BlockMatrix<T>& m, int64_t row, const T* other,
                                               int64_t step, T* out, IndexCheck& range) {
  using V = typename Vectors<T>::Vector;
  using U = typename Vectors<T>::Unaligned;
  constexpr int kLanes = Vectors<T>::kLanes;
  V sums[kVectors] = {};
  for (int64_t i = e.begin; i < e.end; ++i) {
    const int64_t column = range.checked(e.col[i]);
    if constexpr (kBlocks) {
      const T* value = m.values + (i * m.p + row) * m.q;
      for (int64_t c = 0; c < m.q; ++c) {
        const T* from = other + (column * m.q + c) * step;
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) sums[v] += value[c] * *reinterpret_cast<const U*>(from + v * kLanes);
      }
    } else {
      const T value = m.values[i];
      const T* from = other + column * step;
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sums[v] += value * *reinterpret_cast<const U*>(from + v * kLanes);
    }
  }
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) *reinterpret_cast<U*>(out + v * kLanes) = sums[v];
}

// Reports an invalid index, and stores zeros as the results of its row.
template <typename T>
[[gnu::noinline, gnu::cold]] void reject_row(int64_t index, T* out, int64_t k, IndexCheck& range) {
  range.report(index);
  std::fill_n(out, k, T{});
}

// The same for few vectors of kSize bytes and a CSR matrix: sums of every fourth entry, so that an addition need not
// wait for the last. An invalid index ends the loop: a call that returns to it would keep the sums in memory instead of
// registers.
template <int kVectors, int kSize = kBytes, typename T>
[[gnu::always_inline]] inline void sum_few_vectors(const Entries& e, const BlockMatrix<T>& m, const T* other,
                                                   int64_t step, T* out, IndexCheck& range) {
  using V = typename Vectors<T, kSize>::Vector;
  using U = typename Vectors<T, kSize>::Unaligned;
  constexpr int kLanes = Vectors<T, kSize>::kLanes, kSets = 4;
  V sums[kSets][kVectors] = {};
  int64_t i = e.begin;
  const auto add = [&](V(&to)[kVectors], int64_t entry, int64_t column) __attribute__((always_inline)) {
    const T value = m.values[entry];
    const T* from = other + column * step;
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) to[v] += value * *reinterpret_cast<const U*>(from + v * kLanes);
  };
  for (; i + kSets <= e.end; i += kSets) {
    int64_t columns[kSets];
#pragma GCC unroll 4
    for (int s = 0; s < kSets; ++s) {
      const int64_t column = e.col[i + s];
      if (!range.contains(column)) [[unlikely]]
        return reject_row(column, out, kVectors * kLanes, range);
      columns[s] = column;
    }
#pragma GCC unroll 4
    for (int s = 0; s < kSets; ++s) add(sums[s], i + s, columns[s]);
  }
  for (; i < e.end; ++i) {
    const int64_t column = e.col[i];
    if (!range.contains(column)) [[unlikely]]
      return reject_row(column, out, kVectors * kLanes, range);
    add(sums[0], i, column);
  }
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) {
    *reinterpret_cast<U*>(out + v * kLanes) = (sums[0][v] + sums[1][v]) + (sums[2][v] + sums[3][v]);
  }
}

// The sums of the last columns, fewer than a vector of kSize bytes times 2 has, in vectors of half the size each.
template <int kSize, typename T>
[[gnu::always_inline]] inline void sum_last_columns(const Entries& e, const BlockMatrix<T>& m, const T* other,
                                                    int64_t step, int64_t k, T* out, IndexCheck& range) {
  constexpr int64_t kLanes = Vectors<T, kSize>::kLanes;
  int64_t j = 0;
  if (k >= kLanes) {
    sum_few_vectors<1, kSize>(e, m, other, step, out, range);
    j = kLanes;
  }
  if constexpr (kLanes > 1) {
    if (j < k) sum_last_columns<kSize / 2>(e, m, other + j, step, k - j, out + j, range);
  }
}

// The same for any type and number of columns.
template <typename T>
[[gnu::always_inline]] inline void sum_scalars(const Entries& e, const BlockMatrix<T>& m, int64_t row, const T* other,
                                               int64_t step, int64_t k, T* out, IndexCheck& range) {
  constexpr int64_t kMost = 16;
  for (int64_t first = 0; first < k; first += kMost) {
    const int64_t n = std::min(kMost, k - first);
    T sums[kMost] = {};
    for (int64_t i = e.begin; i < e.end; ++i) {
      const int64_t column = range.checked(e.col[i]);
      const T* value = m.values + (i * m.p + row) * m.q;
      for (int64_t c = 0; c < m.q; ++c) {
        const T* from = other + (column * m.q + c) * step + first;
        for (int64_t j = 0; j < n; ++j) sums[j] = static_cast<T>(sums[j] + value[c] * from[j]);
      }
    }
    std::copy_n(sums, n, out + first);
  }
}

// Rows [begin, end) of blocks, and k columns of `other` whose rows are `step` apart, as are those of `out`.
template <bool kBlocks, typename T>
[[gnu::always_inline]] inline void multiply_rows_in(const BlockMatrix<T>& m, int64_t begin, int64_t end, const T* other,
                                                    int64_t step, int64_t k, T* out, int64_t out_step,
                                                    IndexCheck& range) {
  for (int64_t r = begin; r < end; ++r) {
    const Entries e{m.col, m.crow[r], m.crow[r + 1]};
    for (int64_t row = 0; row < m.p; ++row) {
      T* to = out + (r * m.p + row) * out_step;
      int64_t j = 0;
      if constexpr (kHasVectors<T>) {
        constexpr int64_t kLanes = Vectors<T>::kLanes;
        for (; j + 8 * kLanes <= k; j += 8 * kLanes) sum_vectors<8, kBlocks>(e, m, row, other + j, step, to + j, range);
        if (j + 4 * kLanes <= k) {
          sum_vectors<4, kBlocks>(e, m, row, other + j, step, to + j, range);
          j += 4 * kLanes;
        }
        if (j + 2 * kLanes <= k) {
          if constexpr (kBlocks) {
            sum_vectors<2, true>(e, m, row, other + j, step, to + j, range);
          } else {
            sum_few_vectors<2>(e, m, other + j, step, to + j, range);
          }
          j += 2 * kLanes;
        }
        if constexpr (kBlocks) {
          if (j + kLanes <= k) {
            sum_vectors<1, true>(e, m, row, other + j, step, to + j, range);
            j += kLanes;
          }
        } else if (j < k) {
          sum_last_columns<kBytes>(e, m, other + j, step, k - j, to + j, range);
          j = k;
        }
      }
      if (j < k) sum_scalars(e, m, row, other + j, step, k - j, to + j, range);
    }
  }
}

TT_CLONES void multiply_rows(const BlockMatrix<float>& m, int64_t begin, int64_t end, const float* other, int64_t step,
                             int64_t k, float* out, int64_t out_step, IndexCheck& range) {
  m.p == 1 && m.q == 1 ? multiply_rows_in<false>(m, begin, end, other, step, k, out, out_step, range)
                       : multiply_rows_in<true>(m, begin, end, other, step, k, out, out_step, range);
}

TT_CLONES void multiply_rows(const BlockMatrix<double>& m, int64_t begin, int64_t end, const double* other,
                             int64_t step, int64_t k, double* out, int64_t out_step, IndexCheck& range) {
  m.p == 1 && m.q == 1 ? multiply_rows_in<false>(m, begin, end, other, step, k, out, out_step, range)
                       : multiply_rows_in<true>(m, begin, end, other, step, k, out, out_step, range);
}

template <typename T>
void multiply_rows(const BlockMatrix<T>& m, int64_t begin, int64_t end, const T* other, int64_t step, int64_t k, T* out,
                   int64_t out_step, IndexCheck& range) {
  multiply_rows_in<true>(m, begin, end, other, step, k, out, out_step, range);
}

// A product with one column.
template <typename T>
[[gnu::always_inline]] inline void multiply_vector_in(const BlockMatrix<T>& m, int64_t begin, int64_t end,
                                                      const T* other, T* out, IndexCheck& range) {
  for (int64_t r = begin; r < end; ++r) {
    T sums[4] = {};
    int64_t i = m.crow[r];
    const int64_t last = m.crow[r + 1];
    for (; i + 4 <= last; i += 4) {
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) {
        sums[j] = static_cast<T>(sums[j] + m.values[i + j] * other[range.checked(m.col[i + j])]);
      }
    }
    for (; i < last; ++i) sums[0] = static_cast<T>(sums[0] + m.values[i] * other[range.checked(m.col[i])]);
    out[r] = static_cast<T>((sums[0] + sums[1]) + (sums[2] + sums[3]));
  }
}

}  // namespace

namespace {

constexpr int64_t kCacheBytes = int64_t{1} << 20;  // of the dense operand, that stay in a core's cache
constexpr int64_t kMinUses = 8;                    // of each row, from which a copy of columns pays

// The number of columns to multiply at a time, so that they stay in the cache; k for all.
template <typename T>
int64_t tile_columns(const BlockMatrix<T>& m, int64_t k) {
  const int64_t bytes = std::max<int64_t>(m.columns, 1) * static_cast<int64_t>(sizeof(T));
  if (bytes * k <= kCacheBytes || m.crow[m.rows] < kMinUses * m.columns || m.p != 1 || m.q != 1) return k;
  const int64_t step = 4 * kBytes / static_cast<int64_t>(sizeof(T));
  if (bytes * step > 2 * kCacheBytes) return k;
  return std::min(k, std::max(step, kCacheBytes / bytes / step * step));
}

// out = m @ other, some columns at a time, copied to consecutive memory: rows of a power of two of bytes would share
// few sets of the cache.
template <typename T>
void multiply_tiles(const BlockMatrix<T>& m, const T* other, int64_t k, int64_t tile, T* out, IndexCheck& range) {
  Tensor buffer = empty({m.columns * tile * static_cast<int64_t>(sizeof(T))}, DType::kUInt8, Device{});
  T* copy = static_cast<T*>(buffer.data());
  for (int64_t first = 0; first < k; first += tile) {
    const int64_t width = std::min(tile, k - first);
    parallel_for(m.columns, std::max<int64_t>(1, (1 << 14) / width), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) std::copy_n(other + r * k + first, width, copy + r * width);
    });
    parallel_for_rows(m.crow, m.rows, width, [&](int64_t begin, int64_t end) {
      multiply_rows(m, begin, end, copy, width, width, out + first, k, range);
    });
  }
}

}  // namespace

template <typename T>
void multiply(const BlockMatrix<T>& m, const T* other, int64_t k, T* out, IndexCheck& range) {
  if (k == 1 && m.p == 1 && m.q == 1) {
    return parallel_for_rows(m.crow, m.rows, 1,
                             [&](int64_t begin, int64_t end) { multiply_vector_in(m, begin, end, other, out, range); });
  }
  const int64_t tile = tile_columns(m, k);
  if (tile < k) return multiply_tiles(m, other, k, tile, out, range);
  parallel_for_rows(m.crow, m.rows, m.p * m.q * k,
                    [&](int64_t begin, int64_t end) { multiply_rows(m, begin, end, other, k, k, out, k, range); });
}

namespace {

// Adds the products of all entries, in order, to `width` columns, whose rows are `step` apart in other and `out_step`
// in out.
template <typename T>
[[gnu::always_inline]] inline void add_columns_in(const BlockMatrix<T>& m, int64_t width, const T* other, int64_t step,
                                                  T* out, int64_t out_step, IndexCheck& range) {
  for (int64_t r = 0; r < m.rows; ++r) {
    const T* __restrict from = other + r * step;
    for (int64_t i = m.crow[r]; i < m.crow[r + 1]; ++i) {
      T* __restrict to = out + range.checked(m.col[i]) * out_step;
      const T value = m.values[i];
#pragma GCC ivdep
      for (int64_t j = 0; j < width; ++j) to[j] = static_cast<T>(to[j] + value * from[j]);
    }
  }
}

TT_CLONES void add_columns(const BlockMatrix<float>& m, int64_t width, const float* other, int64_t step, float* out,
                           int64_t out_step, IndexCheck& range) {
  add_columns_in(m, width, other, step, out, out_step, range);
}
TT_CLONES void add_columns(const BlockMatrix<double>& m, int64_t width, const double* other, int64_t step, double* out,
                           int64_t out_step, IndexCheck& range) {
  add_columns_in(m, width, other, step, out, out_step, range);
}
template <typename T>
void add_columns(const BlockMatrix<T>& m, int64_t width, const T* other, int64_t step, T* out, int64_t out_step,
                 IndexCheck& range) {
  add_columns_in(m, width, other, step, out, out_step, range);
}

// The product of two rows of k elements. The order of the sums does not depend on the instruction set.
template <typename T>
[[gnu::always_inline]] inline T row_product(const T* x, const T* y, int64_t k) {
  T sum{};
  int64_t j = 0;
  if constexpr (kHasVectors<T>) {
    using V = typename Vectors<T>::Vector;
    using U = typename Vectors<T>::Unaligned;
    constexpr int64_t kLanes = Vectors<T>::kLanes;
    V sums[2] = {};
    for (; j + 2 * kLanes <= k; j += 2 * kLanes) {
      sums[0] += *reinterpret_cast<const U*>(x + j) * *reinterpret_cast<const U*>(y + j);
      sums[1] += *reinterpret_cast<const U*>(x + j + kLanes) * *reinterpret_cast<const U*>(y + j + kLanes);
    }
    if (j + kLanes <= k) {
      sums[0] += *reinterpret_cast<const U*>(x + j) * *reinterpret_cast<const U*>(y + j);
      j += kLanes;
    }
    sums[0] += sums[1];
    for (int64_t half = kLanes / 2; half > 0; half /= 2) {
      for (int64_t l = 0; l < half; ++l) sums[0][l] += sums[0][l + half];
    }
    sum = sums[0][0];
  }
  for (; j < k; ++j) sum = static_cast<T>(sum + x[j] * y[j]);
  return sum;
}

// The sums of the elements of four vectors of float.
[[gnu::always_inline]] inline void store_totals(const Vectors<float>::Vector (&v)[4], float* out) {
  typedef float Quad __attribute__((vector_size(16)));
  Quad q[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const auto half = __builtin_shufflevector(v[i], v[i], 0, 1, 2, 3, 4, 5, 6, 7) +
                      __builtin_shufflevector(v[i], v[i], 8, 9, 10, 11, 12, 13, 14, 15);
    q[i] = __builtin_shufflevector(half, half, 0, 1, 2, 3) + __builtin_shufflevector(half, half, 4, 5, 6, 7);
  }
  const Quad a = __builtin_shufflevector(q[0], q[1], 0, 4, 1, 5) + __builtin_shufflevector(q[0], q[1], 2, 6, 3, 7);
  const Quad b = __builtin_shufflevector(q[2], q[3], 0, 4, 1, 5) + __builtin_shufflevector(q[2], q[3], 2, 6, 3, 7);
  const Quad sums = __builtin_shufflevector(a, b, 0, 1, 4, 5) + __builtin_shufflevector(a, b, 2, 3, 6, 7);
  std::memcpy(out, &sums, sizeof(sums));
}

// Entries of a row: four products at a time share the sums of their vectors' elements. Returns
// the number of entries done.
[[gnu::always_inline]] inline int64_t sample_fours(const int64_t* col, int64_t count, const float* x, const float* y,
                                                   int64_t k, float* out, IndexCheck& range) {
  using V = Vectors<float>::Vector;
  using U = Vectors<float>::Unaligned;
  constexpr int64_t kLanes = Vectors<float>::kLanes;
  int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    const float* from[4];
    V sums[4] = {};
    for (int e = 0; e < 4; ++e) from[e] = y + range.checked(col[i + e]) * k;
    int64_t j = 0;
    for (; j + kLanes <= k; j += kLanes) {
      const V a = *reinterpret_cast<const U*>(x + j);
#pragma GCC unroll 4
      for (int e = 0; e < 4; ++e) sums[e] += a * *reinterpret_cast<const U*>(from[e] + j);
    }
    store_totals(sums, out + i);
    for (; j < k; ++j) {
      for (int e = 0; e < 4; ++e) out[i + e] += x[j] * from[e][j];
    }
  }
  return i;
}

template <typename T>
[[gnu::always_inline]] inline void sample_rows_in(const BlockMatrix<T>& m, int64_t begin, int64_t end, const T* x,
                                                  const T* y, int64_t k, T* out, IndexCheck& range) {
  for (int64_t r = begin; r < end; ++r) {
    int64_t i = m.crow[r];
    if constexpr (std::is_same_v<T, float>) {
      i += sample_fours(m.col + i, m.crow[r + 1] - i, x + r * k, y, k, out + i, range);
    }
    for (; i < m.crow[r + 1]; ++i) {
      out[i] = row_product(x + r * k, y + range.checked(m.col[i]) * k, k);
    }
  }
}

TT_CLONES void sample_rows(const BlockMatrix<float>& m, int64_t begin, int64_t end, const float* x, const float* y,
                           int64_t k, float* out, IndexCheck& range) {
  sample_rows_in(m, begin, end, x, y, k, out, range);
}
TT_CLONES void sample_rows(const BlockMatrix<double>& m, int64_t begin, int64_t end, const double* x, const double* y,
                           int64_t k, double* out, IndexCheck& range) {
  sample_rows_in(m, begin, end, x, y, k, out, range);
}
template <typename T>
void sample_rows(const BlockMatrix<T>& m, int64_t begin, int64_t end, const T* x, const T* y, int64_t k, T* out,
                 IndexCheck& range) {
  sample_rows_in(m, begin, end, x, y, k, out, range);
}

}  // namespace

template <typename T>
void multiply_transposed(const BlockMatrix<T>& m, const T* other, int64_t k, T* out, IndexCheck& range) {
  // Each thread adds to its own columns, so that sums are in the order of the entries for any number of threads.
  const int64_t tile = tile_columns(m, k);
  if (tile == k) {
    const int64_t entries = std::max<int64_t>(m.crow[m.rows], 1);
    return parallel_for(
        k, std::max<int64_t>(kBytes / static_cast<int64_t>(sizeof(T)), (1 << 15) / entries),
        [&](int64_t begin, int64_t end) { add_columns(m, end - begin, other + begin, k, out + begin, k, range); });
  }
  // Sums of some columns at a time, in memory of their own that stays in the cache.
  const int64_t tiles = (k + tile - 1) / tile, size = m.columns * tile;
  Tensor buffer = empty({tiles * size * static_cast<int64_t>(sizeof(T))}, DType::kUInt8, Device{});
  parallel_for(tiles, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i * tile, width = std::min(tile, k - first);
      T* sums = static_cast<T*>(buffer.data()) + i * size;
      std::fill_n(sums, m.columns * width, T{});
      add_columns(m, width, other + first, k, sums, width, range);
      for (int64_t c = 0; c < m.columns; ++c) std::copy_n(sums + c * width, width, out + c * k + first);
    }
  });
}

template <typename T>
void multiply_sampled(const BlockMatrix<T>& m, const T* x, const T* y, int64_t k, T* out, IndexCheck& range) {
  parallel_for_rows(m.crow, m.rows, k,
                    [&](int64_t begin, int64_t end) { sample_rows(m, begin, end, x, y, k, out, range); });
}

#define TT_INSTANTIATE(T)                                                                       \
  template void multiply(const BlockMatrix<T>&, const T*, int64_t, T*, IndexCheck&);            \
  template void multiply_transposed(const BlockMatrix<T>&, const T*, int64_t, T*, IndexCheck&); \
  template void multiply_sampled(const BlockMatrix<T>&, const T*, const T*, int64_t, T*, IndexCheck&);

TT_INSTANTIATE(float)
TT_INSTANTIATE(double)
TT_INSTANTIATE(Complex<float>)
TT_INSTANTIATE(Complex<double>)
TT_INSTANTIATE(uint8_t)
TT_INSTANTIATE(int8_t)
TT_INSTANTIATE(int16_t)
TT_INSTANTIATE(int32_t)
TT_INSTANTIATE(int64_t)
TT_INSTANTIATE(uint16_t)
TT_INSTANTIATE(uint32_t)
TT_INSTANTIATE(uint64_t)
#undef TT_INSTANTIATE

}  // namespace tt::cpu
