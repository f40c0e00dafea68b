// LU factorisation and triangular solves of row-major matrices, by halves (Toledo 1997: "Locality of reference in LU
// decomposition with partial pivoting"). Nearly all work is in products, and no matrix is transposed for LAPACK.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "engine/device/cancellation.h"
#include "kernels/cpu/blas/accumulate_product.h"
#include "kernels/cpu/lapack/column_major.h"
#include "kernels/cpu/lapack/matrices.h"
#include "kernels/cpu/lapack/triangular.h"
#include "kernels/cpu/loops/clones.h"

namespace tt::cpu {
namespace {

constexpr int64_t kBase = 16;      // rows of a system, or columns of a panel, that are not divided further
constexpr int64_t kColumns = 256;  // right-hand sides whose kBase rows fit the L1 cache

int64_t half_of(int64_t n) { return std::max(n / 2 / kBase * kBase, kBase); }

// c -= op(a) b for row-major matrices, where c is m x n.
template <typename T>
void subtract_product(int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, bool transposed, const T* b,
                      int64_t ldb, T* c, int64_t ldc) {
  accumulate_product<T>('N', transposed ? 'T' : 'N', static_cast<int>(n), static_cast<int>(m), static_cast<int>(k),
                        T(-1), b, static_cast<int>(ldb), a, static_cast<int>(lda), T(1), c, static_cast<int>(ldc));
}

template <typename T>
TT_CLONES void subtract_row(T* __restrict to, const T* __restrict from, T factor, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] -= factor * from[i];
}
template <typename T>
TT_CLONES void exchange_rows(T* __restrict a, T* __restrict b, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const T x = a[i];
    a[i] = b[i];
    b[i] = x;
  }
}
template <typename T>
TT_CLONES void divide_row(T* __restrict to, T divisor, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = to[i] / divisor;
}

// Solves by substitution, from the first row to the last (`forward`) or from the last to the first.
template <typename T>
void substitute(const Triangle<T>& a, int64_t n, bool forward, T* x, int64_t columns, int64_t x_stride) {
  for (int64_t step = 0; step < n; ++step) {
    const int64_t i = forward ? step : n - 1 - step;
    for (int64_t solved = 0; solved < step; ++solved) {
      const int64_t j = forward ? solved : n - 1 - solved;
      const T factor = a.data[a.transposed ? j * a.stride + i : i * a.stride + j];
      subtract_row(x + i * x_stride, x + j * x_stride, factor, columns);
    }
    if (!a.unit) divide_row(x + i * x_stride, a.data[i * a.stride + i], columns);
  }
}

// |re| + |im|, as LAPACK compares pivots.
template <typename T>
real_of_t<T> pivot_size(T x) {
  if constexpr (is_complex_v<T>)
    return std::abs(x.re) + std::abs(x.im);
  else
    return std::abs(x);
}

// The bits of a size. They order positive numbers, and NaN above infinity; the compiler can vectorise the comparison of
// integers only.
template <typename T>
auto pivot_bits(T x) {
  using R = real_of_t<T>;
  return std::bit_cast<std::conditional_t<sizeof(R) == 4, uint32_t, uint64_t>>(pivot_size(x));
}

// The bits of the largest size in a column.
template <typename T>
TT_CLONES auto largest_bits(const T* column, int64_t n) {
  decltype(pivot_bits(T{})) largest = 0;
  for (int64_t i = 0; i < n; ++i) largest = std::max(largest, pivot_bits(column[i]));
  return largest;
}

// The row of the first largest element, or of NaN if there is one.
template <typename T>
int64_t pivot_row(const T* column, int64_t n) {
  constexpr int64_t kSearched = 64;
  const auto largest = largest_bits(column, n);
  int64_t first = 0;
  while (first + kSearched < n && largest_bits(column + first, kSearched) != largest) first += kSearched;
  for (int64_t i = first; i < n; ++i) {
    if (pivot_bits(column[i]) == largest) return i;
  }
  return 0;
}

// The matrix of one factorisation: row-major, with `stride` elements per row.
template <typename T>
struct Factorisation {
  int64_t stride;
  T* panel;  // room for kBase columns

  // Factors `a` (m x n, n <= kBase) column by column, in a copy whose columns are contiguous. Returns the number of the
  // first zero pivot, counted from 1, or 0. `pivots` are counted from 1.
  int32_t factor_panel(T* a, int64_t m, int64_t n, int32_t* pivots) const {
    transpose_copy(a, stride, m, n, panel, m);
    int32_t info = 0;
    for (int64_t j = 0; j < n; ++j) {
      T* column = panel + j * m;
      for (int64_t i = 0; i < std::min(j, m); ++i) {
        subtract_row(column + i + 1, panel + i * m + i + 1, column[i], m - i - 1);
      }
      if (j >= m) continue;
      const int64_t row = j + pivot_row(column + j, m - j);
      pivots[j] = static_cast<int32_t>(row + 1);
      for (int64_t c = 0; c < n; ++c) std::swap(panel[c * m + j], panel[c * m + row]);
      if (column[j] == T(0))
        info = info == 0 ? static_cast<int32_t>(j + 1) : info;
      else
        divide_row(column + j + 1, column[j], m - j - 1);
    }
    transpose_copy(panel, m, n, m, a, stride);
    return info;
  }

  // Exchanges rows of a matrix with n columns.
  void exchange(T* a, int64_t n, const int32_t* pivots, int64_t count) const {
    for (int64_t i = 0; i < count; ++i) {
      if (const int64_t row = pivots[i] - 1; row != i) exchange_rows(a + i * stride, a + row * stride, n);
    }
  }

  // Factors `a` (m x n). Returns as factor_panel().
  int32_t factor(T* a, int64_t m, int64_t n, int32_t* pivots) const {
    if (n <= kBase) return factor_panel(a, m, n, pivots);
    check_cancelled();
    const int64_t left = half_of(n), right = n - left, done = std::min(m, left);
    int32_t info = factor(a, m, left, pivots);
    T *top = a + left, *bottom = top + done * stride;
    exchange(top, right, pivots, done);
    solve_in_place<T>({a, stride, false, false, true}, done, top, right, stride);
    if (m == done) return info;
    subtract_product(m - done, right, done, a + done * stride, stride, false, top, stride, bottom, stride);
    const int32_t later = factor(bottom, m - done, right, pivots + done);
    if (info == 0 && later != 0) info = static_cast<int32_t>(later + done);
    const int64_t more = std::min(m - done, right);
    exchange(a + done * stride, left, pivots + done, more);
    for (int64_t i = done; i < done + more; ++i) pivots[i] += static_cast<int32_t>(done);
    return info;
  }
};

}  // namespace

template <typename T>
void solve_in_place(const Triangle<T>& a, int64_t n, T* x, int64_t columns, int64_t x_stride) {
  const bool forward = a.upper == a.transposed;
  if (n <= kBase) {
    for (int64_t c = 0; c < columns; c += kColumns) {
      substitute(a, n, forward, x + c, std::min(kColumns, columns - c), x_stride);
    }
    return;
  }
  check_cancelled();
  const int64_t above = half_of(n), below = n - above;
  const Triangle<T> first = a, last{a.data + above * (a.stride + 1), a.stride, a.upper, a.transposed, a.unit};
  T* x_last = x + above * x_stride;
  // The part of `a` beside the diagonal blocks.
  const T* rest = a.upper ? a.data + above : a.data + above * a.stride;
  if (forward) {
    solve_in_place(first, above, x, columns, x_stride);
    subtract_product(below, columns, above, rest, a.stride, a.transposed, x, x_stride, x_last, x_stride);
    solve_in_place(last, below, x_last, columns, x_stride);
  } else {
    solve_in_place(last, below, x_last, columns, x_stride);
    subtract_product(above, columns, below, rest, a.stride, a.transposed, x_last, x_stride, x, x_stride);
    solve_in_place(first, above, x, columns, x_stride);
  }
}

template <typename T>
Lu<T>::Lu(int64_t m, int64_t n)
    : m_(to_lapack_int(m)),
      n_(to_lapack_int(n)),
      panel_(static_cast<size_t>(m) * static_cast<size_t>(std::min(int64_t{n_}, kBase))) {}

template <typename T>
int32_t Lu<T>::factor(T* a, int32_t* pivots) {
  return Factorisation<T>{n_, panel_.data()}.factor(a, m_, n_, pivots);
}

template <typename T>
void solve_triangular(const T* a, T* b, int64_t n, int64_t k, bool upper, bool transposed, bool unit) {
  const int size = to_lapack_int(n), columns = to_lapack_int(k);
  if (size == 0 || columns == 0) return;
  // LAPACK reads `a` as its transpose.
  if (columns == 1) return lapack::trsv(upper ? 'L' : 'U', transposed ? 'N' : 'T', unit ? 'U' : 'N', size, a, size, b);
  solve_in_place<T>({a, n, upper, transposed, unit}, n, b, k, k);
}

#define TT_LU_OF(T)                                                                   \
  template class Lu<T>;                                                               \
  template void solve_in_place<T>(const Triangle<T>&, int64_t, T*, int64_t, int64_t); \
  template void solve_triangular<T>(const T*, T*, int64_t, int64_t, bool, bool, bool);
TT_LU_OF(float)
TT_LU_OF(double)
TT_LU_OF(Complex<float>)
TT_LU_OF(Complex<double>)
#undef TT_LU_OF

}  // namespace tt::cpu
