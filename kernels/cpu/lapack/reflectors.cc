#include "kernels/cpu/lapack/reflectors.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "engine/device/cancellation.h"
#include "kernels/cpu/blas/accumulate_product.h"
#include "kernels/cpu/blas/routines.h"
#include "kernels/cpu/lapack/triangular.h"

namespace tt::cpu {
namespace {

// Reflections per block: more make the products faster, and the factorisation of a block slower.
constexpr int kBlock = 64, kFactoredBlock = 32;
constexpr int kColumns = 4096;  // of the matrix that reflections are applied to, at a time: limits the workspace

int64_t at(int row, int column, int ld) { return row + int64_t{column} * ld; }

template <typename T>
void fill_identity_columns(int m, int first, int last, T* a, int lda) {
  for (int j = first; j < last; ++j) {
    std::fill_n(a + at(0, j, lda), m, T(0));
    a[at(j, j, lda)] = T(1);
  }
}

}  // namespace

template <typename T>
void Reflectors<T>::load(int rows, int count, const T* v, int ldv, const T* tau) {
  rows_ = rows, count_ = count;
  v_.resize(static_cast<size_t>(at(0, count, rows)));
  inverse_t_.resize(static_cast<size_t>(count * count));
  for (int j = 0; j < count; ++j) {
    T* column = v_.data() + at(0, j, rows);
    std::fill_n(column, rows, T(0));
    if (tau[j] == T(0)) continue;  // no reflection: v = 0 and tau = 1 have the same effect
    column[j] = T(1);
    std::copy(v + at(j + 1, j, ldv), v + at(rows, j, ldv), column + j + 1);
  }
  accumulate_product<T>('C', 'N', count, count, rows, T(1), v_.data(), rows, v_.data(), rows, T(0), inverse_t_.data(),
                        count);
  t_.assign(inverse_t_.size(), T(0));
  for (int j = 0; j < count; ++j) {
    const auto diagonal = static_cast<size_t>(at(j, j, count));
    inverse_t_[diagonal] = tau[j] == T(0) ? T(1) : T(1) / tau[j];
    t_[diagonal] = T(1);
  }
  // The upper triangle of a column-major matrix is the lower triangle of its transpose, which is row-major.
  solve_in_place<T>({inverse_t_.data(), count, false, false, false}, count, t_.data(), count, count);
}

template <typename T>
void Reflectors<T>::reflect(bool adjoint, int columns, T* c, int ldc) {
  for (int first = 0; first < columns; first += kColumns) {
    reflect_columns(adjoint, std::min(kColumns, columns - first), c + at(0, first, ldc), ldc);
  }
}

template <typename T>
void Reflectors<T>::reflect_columns(bool adjoint, int columns, T* c, int ldc) {
  const int64_t size = at(0, columns, count_);
  products_.resize(static_cast<size_t>(2 * size));
  T *x = products_.data(), *y = x + size;
  accumulate_product<T>('C', 'N', count_, columns, rows_, T(1), v_.data(), rows_, c, ldc, T(0), x, count_);
  accumulate_product<T>(adjoint ? 'C' : 'N', 'N', count_, columns, count_, T(1), t_.data(), count_, x, count_, T(0), y,
                        count_);
  accumulate_product<T>('N', 'N', rows_, columns, count_, T(-1), v_.data(), rows_, y, count_, T(1), c, ldc);
}

template <typename T>
void Reflectors<T>::factor(int m, int n, T* a, int lda, T* tau) {
  const int k = std::min(m, n);
  std::vector<T> t(static_cast<size_t>(kFactoredBlock * kFactoredBlock));
  for (int i = 0; i < k; i += kFactoredBlock) {
    check_cancelled();
    const int count = std::min(kFactoredBlock, k - i), rest = i + count;
    T* block = a + at(i, i, lda);
    lapack::geqrt3(m - i, count, block, lda, t.data());
    for (int j = 0; j < count; ++j) tau[i + j] = t[static_cast<size_t>(at(j, j, count))];
    if (rest == n) break;
    load(m - i, count, block, lda, tau + i);
    reflect(true, n - rest, a + at(i, rest, lda), lda);
  }
}

template <typename T>
void Reflectors<T>::apply(int m, int n, int k, const T* v, int ldv, const T* tau, T* c, int ldc) {
  for (int end = k; end > 0;) {
    check_cancelled();
    const int i = (end - 1) / kBlock * kBlock;
    load(m - i, end - i, v + at(i, i, ldv), ldv, tau + i);
    reflect(false, n, c + i, ldc);
    end = i;
  }
}

template <typename T>
void Reflectors<T>::form(int m, int columns, int k, T* a, int lda, const T* tau) {
  fill_identity_columns(m, k, columns, a, lda);
  for (int end = k; end > 0;) {
    check_cancelled();
    const int i = (end - 1) / kBlock * kBlock;
    load(m - i, end - i, a + at(i, i, lda), lda, tau + i);
    fill_identity_columns(m, i, end, a, lda);
    reflect(false, columns - i, a + at(i, i, lda), lda);  // earlier columns are not changed by these reflections
    end = i;
  }
}

template class Reflectors<float>;
template class Reflectors<double>;
template class Reflectors<Complex<float>>;
template class Reflectors<Complex<double>>;

}  // namespace tt::cpu
