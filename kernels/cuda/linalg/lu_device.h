// LU factorisation, row exchanges and triangular solves of one row-major matrix by a group of threads.
//
// All threads of the group must call these functions with the same arguments; the results are visible to all of them on
// return.
#pragma once

#include "kernels/common/iteration/element.h"
#include "kernels/common/linalg/decomposition.h"
#include "kernels/common/math/scalar_traits.h"
#include "kernels/cuda/launch/device_error.h"

namespace tt::cuda {

template <typename T>
struct Pivot {
  T size;
  int64_t row;
};
struct Larger {
  template <typename T>
  TT_FUNCTION Pivot<T> operator()(const Pivot<T>& a, const Pivot<T>& b) const {
    return b.size > a.size || (b.size == a.size && b.row < a.row) ? b : a;
  }
};

// Returns the row with the largest element of a column, among rows `from` and later. The size of a complex number is
// |re| + |im|, as in LAPACK. NaN counts as the largest.
template <typename T>
TT_DEVICE Pivot<real_of_t<T>> find_pivot(Group& group, const T* a, int64_t m, int64_t n, int64_t from, int64_t column) {
  using R = real_of_t<T>;
  Pivot<R> best{R(-1), m};
  for (int64_t i = from + group.rank(); i < m; i += group.size()) {
    const R size = math::sum_of_parts(a[i * n + column]);
    best = Larger()(best, {is_nan(size) ? math::kInf<R> : size, i});
  }
  return group.reduce(best, Larger());
}

// Overwrites a (m x n) with U and L; L's diagonal of ones is not stored. Step i exchanges rows i and pivots[i] - 1.
// Returns the index, from 1, of the first zero on U's diagonal, or 0 if there is none.
template <typename T>
TT_DEVICE int32_t factor_lu(Group& group, T* a, int64_t m, int64_t n, int32_t* pivots) {
  int32_t failed = 0;
  for (int64_t j = 0; j < m && j < n; ++j) {
    const Pivot<real_of_t<T>> pivot = find_pivot(group, a, m, n, j, j);
    if (group.rank() == 0) pivots[j] = static_cast<int32_t>(pivot.row + 1);
    if (pivot.size == 0) {
      if (failed == 0) failed = static_cast<int32_t>(j + 1);
      continue;
    }
    for (int64_t c = group.rank(); c < n && pivot.row != j; c += group.size()) {
      const T below = a[pivot.row * n + c];
      a[pivot.row * n + c] = a[j * n + c];
      a[j * n + c] = below;
    }
    group.sync();
    const T diagonal = a[j * n + j];
    for (int64_t i = j + 1 + group.rank(); i < m; i += group.size()) a[i * n + j] = a[i * n + j] / diagonal;
    group.sync();
    const int64_t width = n - j - 1, left = (m - j - 1) * width;
    for (int64_t e = group.rank(); e < left; e += group.size()) {
      const int64_t r = j + 1 + e / width, c = j + 1 + e % width;
      a[r * n + c] -= a[r * n + j] * a[j * n + c];
    }
    group.sync();
  }
  group.sync();
  return failed;
}

// Exchanges rows of x (rows x k) as given by `pivots`, or undoes the exchanges if `back`. Reports pivots that are out
// of range.
template <typename T>
TT_DEVICE void exchange_rows(Group& group, const int32_t* pivots, int64_t count, T* x, int64_t rows, int64_t k,
                             bool back, DeviceErrorCell* cell) {
  for (int64_t c = group.rank(); c < k; c += group.size()) {
    for (int64_t step = 0; step < count; ++step) {
      const int64_t i = back ? count - 1 - step : step;
      int64_t with = pivots[i] - 1;
      if (with < 0 || with >= rows) with = report_error(cell, pivots[i], 0, rows);
      const T other = x[with * k + c];
      x[with * k + c] = x[i * k + c];
      x[i * k + c] = other;
    }
  }
  group.sync();
}

inline Error pivot_out_of_range(const DeviceErrorCell& cell) {
  return Error(ErrorKind::kRuntime, pivot_error(cell.values[0], cell.values[2]));
}

// One triangle of a matrix (n x n), or of the matrix's transpose (not its adjoint).
template <typename T>
struct Triangle {
  const T* a;
  int64_t n;
  bool upper, transposed, unit;

  TT_DEVICE T at(int64_t row, int64_t column) const { return transposed ? a[column * n + row] : a[row * n + column]; }
  // Overwrites b (n x k) with the solution x of (triangle) x = b.
  TT_DEVICE void solve(Group& group, T* b, int64_t k) const {
    const bool from_above = upper == transposed;
    for (int64_t step = 0; step < n; ++step) {
      const int64_t i = from_above ? step : n - 1 - step, first = from_above ? i + 1 : 0;
      if (!unit) {
        const T diagonal = at(i, i);
        for (int64_t c = group.rank(); c < k; c += group.size()) b[i * k + c] = b[i * k + c] / diagonal;
        group.sync();
      }
      for (int64_t e = group.rank(); e < (n - 1 - step) * k; e += group.size()) {
        const int64_t r = first + e / k, c = e % k;
        b[r * k + c] -= at(r, i) * b[i * k + c];
      }
      group.sync();
    }
  }
};

}  // namespace tt::cuda
