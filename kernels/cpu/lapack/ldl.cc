// Factorisation of symmetric and Hermitian matrices that need not be positive-definite, by LAPACK.
#include "kernels/cpu/lapack/column_major.h"
#include "kernels/cpu/lapack/matrices.h"

namespace tt::cpu {

template <typename T>
Ldl<T>::Ldl(int64_t n, bool hermitian)
    : n_(to_lapack_int(n)), hermitian_(hermitian && is_complex_v<T>), columns_(lapack::padded_elements(n, n)) {
  if constexpr (is_complex_v<T>) {
    if (hermitian_) lapack::hetrf('L', n_, columns_.data(), n_, nullptr, space_);
  }
  if (!hermitian_) lapack::sytrf('L', n_, columns_.data(), n_, nullptr, space_);
  space_.allocate();
}

template <typename T>
int32_t Ldl<T>::factor(T* a, int32_t* pivots) {
  transpose_copy(a, n_, n_, columns_.data());
  int info = 0;
  if constexpr (is_complex_v<T>) {
    if (hermitian_) info = lapack::hetrf('L', n_, columns_.data(), n_, pivots, space_);
  }
  if (!hermitian_) info = lapack::sytrf('L', n_, columns_.data(), n_, pivots, space_);
  transpose_copy(columns_.data(), n_, n_, a);
  for (int64_t row = 0; row < n_; ++row) std::fill(a + row * n_ + row + 1, a + (row + 1) * n_, T(0));
  return info;
}

template <typename T>
void Ldl<T>::solve(const T* ldl, const int32_t* pivots, T* b, int64_t k) {
  const int columns = to_lapack_int(k);
  transpose_copy(ldl, n_, n_, columns_.data());
  right_.resize(static_cast<size_t>(n_ * k));
  transpose_copy(b, n_, k, right_.data());
  if constexpr (is_complex_v<T>) {
    if (hermitian_) lapack::hetrs('L', n_, columns, columns_.data(), n_, pivots, right_.data(), n_);
  }
  if (!hermitian_) lapack::sytrs('L', n_, columns, columns_.data(), n_, pivots, right_.data(), n_);
  transpose_copy(right_.data(), k, n_, b);
}

// A block of one row has a positive pivot; both rows of a block of two have the same negative one.
template <typename T>
void Ldl<T>::check_pivots(const int32_t* pivots, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const int64_t row = pivots[i] < 0 ? -int64_t{pivots[i]} : pivots[i];
    check(row >= 1 && row <= n, "expected pivots from 1 to ", n, " or their negatives, got ", pivots[i]);
    if (pivots[i] > 0) continue;
    check(i + 1 < n && pivots[i + 1] == pivots[i], "expected two equal negative pivots per block, got ", pivots[i],
          " at ", i);
    ++i;
  }
}

template class Ldl<float>;
template class Ldl<double>;
template class Ldl<Complex<float>>;
template class Ldl<Complex<double>>;

}  // namespace tt::cpu
