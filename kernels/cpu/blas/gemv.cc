#include "kernels/cpu/blas/gemv.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "engine/device/parallel.h"
#include "engine/schema/half.h"
#include "kernels/cpu/loops/clones.h"
#include "kernels/cpu/loops/lanes.h"
#include "kernels/cpu/loops/strided_block.h"

namespace tt::cpu {
namespace {

// Columns of the result computed at a time, so that threads share them. Rows of b are read in pieces of kColumns, whose
// sums stay in the L1 cache; columns of b are read one by one.
constexpr int64_t kColumns = 512;
constexpr int64_t kDots = 32;
// Up to this size a matrix that is used again is probably in the L2 cache.
constexpr int64_t kCachedElements = 1 << 16;

// Rewrites `g` as a row vector times a matrix: a column result is the transpose of such a product.
Gemm as_row(Gemm g) {
  if (g.m == 1) return g;
  std::swap(g.a, g.b);
  std::swap(g.a.row_stride, g.a.column_stride);
  std::swap(g.b.row_stride, g.b.column_stride);
  std::swap(g.a_offsets, g.b_offsets);
  std::swap(g.m, g.n);
  return g;
}

// Adds to y[0, n) the rows of b, each multiplied by its element of x.
template <typename T>
[[gnu::always_inline]] inline void add_rows(int64_t k, int64_t n, const T* x, int64_t x_stride, const T* b, int64_t ldb,
                                            T* y) {
  int64_t p = 0;
  for (; p + 4 <= k; p += 4) {
    const T x0 = x[p * x_stride], x1 = x[(p + 1) * x_stride], x2 = x[(p + 2) * x_stride], x3 = x[(p + 3) * x_stride];
    const T *b0 = b + p * ldb, *b1 = b0 + ldb, *b2 = b1 + ldb, *b3 = b2 + ldb;
    for (int64_t j = 0; j < n; ++j) y[j] += x0 * b0[j] + x1 * b1[j] + x2 * b2[j] + x3 * b3[j];
  }
  for (; p < k; ++p) {
    const T value = x[p * x_stride];
    for (int64_t j = 0; j < n; ++j) y[j] += value * b[p * ldb + j];
  }
}

// The dot product of two contiguous vectors, with enough partial sums to keep the FMA units busy. Elements are T or
// 16-bit floats.
template <typename T, typename X, typename B>
[[gnu::always_inline]] inline T dot(int64_t k, const X* x, const B* b) {
  constexpr int kSums = 256 / sizeof(T);
  T sums[kSums] = {};
  int64_t p = 0;
  for (; p + kSums <= k; p += kSums) {
    for (int i = 0; i < kSums; ++i) sums[i] += static_cast<T>(x[p + i]) * static_cast<T>(b[p + i]);
  }
  for (int i = 0; p < k; ++p, ++i) sums[i] += static_cast<T>(x[p]) * static_cast<T>(b[p]);
  return join_lanes<kSums>(sums, [](T a, T b) { return a + b; });
}

// The dot products of x and kCount columns of b, ldb apart. Joining the partial sums of one takes as long as a hundred
// products, so that several columns share it. The order of additions does not depend on kCount. With kFetch, fetches
// the columns that follow, which the processor does too late for a large b that no cache holds.
template <int64_t kCount, bool kFetch, typename T>
[[gnu::always_inline]] inline void dots_of(int64_t k, const T* x, const T* b, int64_t ldb, T* y) {
  constexpr int kVector = 32 / sizeof(T), kLanes = 2 * kVector;
  typedef T Vector __attribute__((vector_size(32)));
  typedef T Memory __attribute__((vector_size(32), aligned(alignof(T)), may_alias));
  const auto load = [](const T* from) -> const Memory& { return *reinterpret_cast<const Memory*>(from); };
  Vector sums[kCount][2] = {};
  int64_t p = 0;
  for (; p + kLanes <= k; p += kLanes) {
    const Vector x0 = load(x + p), x1 = load(x + p + kVector);
#pragma GCC unroll 4
    for (int64_t j = 0; j < kCount; ++j) {
      if (kFetch) __builtin_prefetch(b + (kCount + j) * ldb + p, 0, 2);
      sums[j][0] += x0 * load(b + j * ldb + p);
      sums[j][1] += x1 * load(b + j * ldb + p + kVector);
    }
  }
  T lanes[kCount][kVector];
#pragma GCC unroll 4
  for (int64_t j = 0; j < kCount; ++j) {
    const Vector sum = sums[j][0] + sums[j][1];
    std::memcpy(lanes[j], &sum, sizeof(sum));
  }
  for (int half = kVector / 2; half > 0; half /= 2) {
    for (int64_t j = 0; j < kCount; ++j) {
      for (int i = 0; i < half; ++i) lanes[j][i] += lanes[j][i + half];
    }
  }
  for (int64_t j = 0; j < kCount; ++j) {
    T rest = 0;
    for (int64_t q = p; q < k; ++q) rest += x[q] * b[j * ldb + q];
    y[j] = lanes[j][0] + rest;
  }
}

template <bool kFetch, typename T>
[[gnu::always_inline]] inline void all_dots(int64_t k, int64_t n, const T* x, const T* b, int64_t ldb, T* y) {
  int64_t j = 0;
  for (; j + 4 <= n; j += 4) dots_of<4, kFetch>(k, x, b + j * ldb, ldb, y + j);
  for (; j < n; ++j) dots_of<1, false>(k, x, b + j * ldb, ldb, y + j);
}

TT_CLONES void add_rows_of(int64_t k, int64_t n, const float* x, int64_t x_stride, const float* b, int64_t ldb,
                           float* y) {
  add_rows(k, n, x, x_stride, b, ldb, y);
}
TT_CLONES void add_rows_of(int64_t k, int64_t n, const double* x, int64_t x_stride, const double* b, int64_t ldb,
                           double* y) {
  add_rows(k, n, x, x_stride, b, ldb, y);
}
TT_CLONES void dots(int64_t k, int64_t n, const float* x, const float* b, int64_t ldb, float* y, bool fetch) {
  fetch ? all_dots<true>(k, n, x, b, ldb, y) : all_dots<false>(k, n, x, b, ldb, y);
}
TT_CLONES void dots(int64_t k, int64_t n, const double* x, const double* b, int64_t ldb, double* y, bool fetch) {
  fetch ? all_dots<true>(k, n, x, b, ldb, y) : all_dots<false>(k, n, x, b, ldb, y);
}

// dot() for 16-bit `b`, summed in blocks of kChunk elements.
template <typename X, typename Half16>
[[gnu::always_inline]] inline float narrow_dot(int64_t k, const X* x, const Half16* b) {
  constexpr int64_t kChunk = 4096;
  float total = 0;
  for (int64_t p = 0; p < k; p += kChunk) total += dot<float>(std::min(kChunk, k - p), x + p, b + p);
  return total;
}
TT_CLONES float dot_of(int64_t k, const float* x, const float* b) { return dot<float>(k, x, b); }
TT_CLONES double dot_of(int64_t k, const double* x, const double* b) { return dot<double>(k, x, b); }
TT_CLONES float dot_of(int64_t k, const float* x, const BFloat16* b) { return narrow_dot(k, x, b); }
TT_CLONES float dot_of(int64_t k, const float* x, const Half* b) { return narrow_dot(k, x, b); }
TT_CLONES float dot_of(int64_t k, const BFloat16* x, const BFloat16* b) { return narrow_dot(k, x, b); }
TT_CLONES float dot_of(int64_t k, const Half* x, const Half* b) { return narrow_dot(k, x, b); }

// Computes the dot products of the vector `row.a` and the columns of `row.b`, which are contiguous.
template <typename Half16>
void run_dots(const Gemm& row) {
  const auto first = [](const Matrix& x, const int64_t* offsets) {
    return static_cast<const Half16*>(x.data) + (offsets ? offsets[0] : 0);
  };
  const Half16 *x = first(row.a, row.a_offsets), *b = first(row.b, row.b_offsets);
  Half16* y = static_cast<Half16*>(row.c);
  if (row.n < 4) {
    for (int64_t j = 0; j < row.n; ++j) y[j] = Half16(dot_of(row.k, x, b + j * row.b.column_stride));
    return;
  }
  std::vector<float> wide_x(row.k);  // converted once for all columns
  load_block(wide_x.data(), x, row.dtype, 1, row.k);
  const int64_t grain = std::max<int64_t>(1, (int64_t{1} << 17) / std::max<int64_t>(row.k, 1));
  parallel_for(row.n, grain, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) y[j] = Half16(dot_of(row.k, wide_x.data(), b + j * row.b.column_stride));
  });
}

template <typename T>
void run(const Gemm& g) {
  const bool by_columns = g.b.row_stride == 1 && (g.a.column_stride == 1 || g.k == 1);
  const int64_t columns = by_columns ? kDots : kColumns, blocks = (g.n + columns - 1) / columns;
  const int64_t grain = std::max<int64_t>(1, (int64_t{1} << 16) / (std::min(g.n, columns) * std::max<int64_t>(g.k, 1)));
  parallel_for(g.batch * blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t entry = task / blocks, first = task % blocks * columns;
      const int64_t n = std::min(columns, g.n - first);
      const T* x = static_cast<const T*>(g.a.data) + (g.a_offsets ? g.a_offsets[entry] : 0);
      const T* b = static_cast<const T*>(g.b.data) + (g.b_offsets ? g.b_offsets[entry] : 0) + first * g.b.column_stride;
      T* y = static_cast<T*>(g.c) + entry * g.n + first;
      if (by_columns && g.n == 1) {
        *y = dot_of(g.k, x, b);
      } else if (by_columns) {
        dots(g.k, n, x, b, g.b.column_stride, y, g.n * g.k > kCachedElements);
      } else {
        std::fill(y, y + n, T{0});
        add_rows_of(g.k, n, x, g.a.column_stride, b, g.b.row_stride, y);
      }
    }
  });
}

}  // namespace

bool is_gemv(const Gemm& g) {
  if (g.m != 1 && g.n != 1) return false;
  const Gemm row = as_row(g);
  if (is_reduced_floating(g.dtype)) return g.batch == 1 && row.a.column_stride == 1 && row.b.row_stride == 1;
  if (g.dtype != DType::kFloat32 && g.dtype != DType::kFloat64) return false;
  return row.b.column_stride == 1 || row.n == 1 || (row.b.row_stride == 1 && row.a.column_stride == 1);
}

void gemv(const Gemm& g) {
  if (g.batch == 0 || g.m == 0 || g.n == 0) return;
  const Gemm row = as_row(g);
  if (row.dtype == DType::kBFloat16) return run_dots<BFloat16>(row);
  if (row.dtype == DType::kFloat16) return run_dots<Half>(row);
  if (row.dtype == DType::kFloat32) return run<float>(row);
  run<double>(row);
}

}  // namespace tt::cpu
