// Cholesky and QR factorisation.
#include "kernels/cpu/lapack/column_major.h"
#include "kernels/cpu/lapack/matrices.h"

namespace tt::cpu {
namespace lapack {

template <typename T>
void Workspace<T>::allocate() {
  // LAPACK returns sizes as values of the element type. Values of float are rounded, so the next larger one is used.
  const auto count = [](Real size) {
    check_lapack_sizes(static_cast<double>(size));
    return static_cast<size_t>(std::nextafter(size, std::numeric_limits<Real>::max())) + 1;
  };
  if constexpr (is_complex_v<T>)
    work.resize(count(work[0].re));
  else
    work.resize(count(work[0]));
  reals.resize(std::max(reals.size(), count(reals[0])));
  integers.resize(std::max(integers.size(), static_cast<size_t>(integers[0])));
  size_query = false;
}

}  // namespace lapack

// LAPACK reads `a` as its transpose, and a's lower triangle as the transpose's upper triangle. It factors the transpose
// into U^H U, where U^T = L.
template <typename T>
int32_t cholesky(T* a, int64_t n) {
  if (n == 0) return 0;
  const int info = lapack::potrf('U', to_lapack_int(n), a, to_lapack_int(n));
  if (info != 0) return info;
  for (int64_t i = 0; i < n; ++i) {
    if (!is_finite(a[i * n + i])) return static_cast<int32_t>(i + 1);
  }
  return 0;
}

template <typename T>
Householder<T>::Householder(int64_t m, int64_t n, int64_t q_columns)
    : m_(to_lapack_int(m)),
      n_(to_lapack_int(n)),
      q_columns_(to_lapack_int(q_columns)),
      columns_(lapack::padded_elements(m, std::max(n, q_columns))) {
  const int k = std::min(m_, n_), ld = std::max(m_, 1);
  if (is_blocked(m, n)) return;
  lapack::geqrf(m_, n_, columns_.data(), ld, nullptr, space_);
  const T factoring = space_.work[0];
  if (q_columns_ > 0) lapack::orgqr(m_, q_columns_, std::min(k, q_columns_), columns_.data(), ld, nullptr, space_);
  space_.allocate();
  lapack::Workspace<T> other;
  other.work[0] = factoring;
  other.allocate();
  if (other.work.size() > space_.work.size()) space_ = std::move(other);
}

template <typename T>
void Householder<T>::factor(const T* a, T* tau) {
  transpose_copy(a, m_, n_, columns_.data());
  if (is_blocked(m_, n_))
    reflectors_.factor(m_, n_, columns_.data(), m_, tau);
  else
    lapack::geqrf(m_, n_, columns_.data(), std::max(m_, 1), tau, space_);
}

template <typename T>
void Householder<T>::triangle(int64_t rows, T* r) const {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < n_; ++j) r[i * n_ + j] = j < i ? T(0) : columns_[static_cast<size_t>(j * m_ + i)];
  }
}

template <typename T>
void Householder<T>::reflections(T* a) const {
  transpose_copy(columns_.data(), n_, m_, a);
}

template <typename T>
void Householder<T>::orthogonal(const T* tau, T* q) {
  const int k = std::min({m_, n_, q_columns_});
  if (is_blocked(m_, n_))
    reflectors_.form(m_, q_columns_, k, columns_.data(), m_, tau);
  else
    lapack::orgqr(m_, q_columns_, k, columns_.data(), std::max(m_, 1), tau, space_);
  transpose_copy(columns_.data(), q_columns_, m_, q);
}

#define TT_FACTORS_OF(T)                     \
  template struct lapack::Workspace<T>;      \
  template int32_t cholesky<T>(T*, int64_t); \
  template class Householder<T>;
TT_FACTORS_OF(float)
TT_FACTORS_OF(double)
TT_FACTORS_OF(Complex<float>)
TT_FACTORS_OF(Complex<double>)
#undef TT_FACTORS_OF

}  // namespace tt::cpu
