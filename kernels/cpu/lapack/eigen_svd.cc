// Eigenvalues and singular values.
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/device/cancellation.h"
#include "engine/device/parallel.h"
#include "kernels/cpu/lapack/column_major.h"
#include "kernels/cpu/lapack/matrices.h"

namespace tt::cpu {
namespace {

template <typename T>
bool triangle_is_finite(const T* a, int64_t n, bool upper) {
  for (int64_t i = 0; i < n; ++i) {
    if (!all_finite(a + i * n + (upper ? i : 0), upper ? n - i : i + 1)) return false;
  }
  return true;
}

// The larger of a number's two parts, without signs.
template <typename T>
real_of_t<T> largest_part(T x) {
  if constexpr (is_complex_v<T>)
    return std::max(std::abs(x.re), std::abs(x.im));
  else
    return std::abs(x);
}

// Converts LAPACK's eigenvectors of a real matrix: a complex pair is stored as two columns, the real and the
// imaginary part.
template <typename R>
void paired_vectors(const R* columns, const R* imaginary, int64_t n, Complex<R>* rows) {
  for (int64_t j = 0; j < n; ++j) {
    const bool pair = imaginary[j] != 0;
    for (int64_t i = 0; i < n; ++i) {
      const R re = columns[j * n + i], im = pair ? columns[(j + 1) * n + i] : R(0);
      rows[i * n + j] = {re, im};
      if (pair) rows[i * n + j + 1] = {re, -im};
    }
    if (pair) ++j;
  }
}

}  // namespace

// Up to this size, LAPACK's driver is faster.
constexpr int64_t kDriverRows = 32;
template <typename T>
Eigh<T>::Eigh(int64_t n, bool upper, bool vectors) : n_(to_lapack_int(n)), upper_(upper), vectors_(vectors) {
  const double size = static_cast<double>(n);
  check_lapack_sizes(vectors ? 2 * size * size + 64 * size : 64 * size);
  columns_.resize(lapack::padded_elements(n, n));
  if (uses_driver()) {
    lapack::heevd(job(), 'L', n_, columns_.data(), n_, static_cast<R*>(nullptr), space_);
    space_.allocate();
    return;
  }
  beside_.resize(static_cast<size_t>(n));
  tau_.resize(static_cast<size_t>(n));
  vectors_of_tridiagonal_.resize(static_cast<size_t>(n * n));
  lapack::hetrd('L', n_, columns_.data(), n_, static_cast<R*>(nullptr), beside_.data(), tau_.data(), space_);
  space_.allocate();
  tridiagonal_.emplace(n_);
}

template <typename T>
bool Eigh<T>::uses_driver() const {
  return !vectors_ || upper_ || n_ <= kDriverRows;
}

// Multiplies the triangle by a power of two if its largest element is so large or small that squares of elements
// would overflow or underflow. Returns the factor.
template <typename T>
real_of_t<T> Eigh<T>::scale() {
  R largest = 0;
  for (int64_t j = 0; j < n_; ++j) {
    for (int64_t i = j; i < n_; ++i)
      largest = std::max(largest, largest_part(columns_[static_cast<size_t>(j * n_ + i)]));
  }
  const R safe = std::sqrt(std::numeric_limits<R>::min() / std::numeric_limits<R>::epsilon());
  if (largest == 0 || (largest > safe && largest < 1 / safe)) return 1;
  const R factor = std::ldexp(R(1), std::min(-std::ilogb(largest), std::numeric_limits<R>::max_exponent - 1));
  for (T& x : columns_) x = x * T(factor);
  return factor;
}

template <typename T>
int32_t Eigh<T>::decompose(const T* a, R* values, T* vectors) {
  if (!triangle_is_finite(a, n_, upper_)) return n_;
  transpose_copy(a, n_, n_, columns_.data());
  if (uses_driver()) {
    const int info = lapack::heevd(job(), upper_ ? 'U' : 'L', n_, columns_.data(), n_, values, space_);
    if (info == 0 && vectors_) transpose_copy(columns_.data(), n_, n_, vectors);
    return info;
  }
  const R factor = scale();
  lapack::hetrd('L', n_, columns_.data(), n_, values, beside_.data(), tau_.data(), space_);
  check_cancelled();
  const PoolLease lease;  // the rest consists of parts and of products
  if (const int info = tridiagonal_->decompose(values, beside_.data(), vectors_of_tridiagonal_.data())) return info;
  for (int i = 0; i < n_ && factor != 1; ++i) values[i] /= factor;
  // The vectors of the matrix are the reflections times the vectors of its tridiagonal form. The first reflection
  // begins at the second row.
  T* product = converted_vectors();
  reflectors_.apply(n_ - 1, n_, n_ - 1, columns_.data() + 1, n_, tau_.data(), product + 1, n_);
  transpose_copy(product, n_, n_, vectors);
  return 0;
}

template <typename T>
T* Eigh<T>::converted_vectors() {
  if constexpr (is_complex_v<T>) {
    converted_.assign(vectors_of_tridiagonal_.begin(), vectors_of_tridiagonal_.end());
    return converted_.data();
  } else {
    return vectors_of_tridiagonal_.data();
  }
}

template <typename T>
Eig<T>::Eig(int64_t n, bool vectors) : n_(to_lapack_int(n)), job_(vectors ? 'V' : 'N') {
  check_lapack_sizes(64 * static_cast<double>(n));
  columns_.resize(lapack::padded_elements(n, n));
  vectors_.resize(vectors ? columns_.size() : 1);
  if constexpr (is_complex_v<T>)
    space_.reals.resize(static_cast<size_t>(2 * n));
  else
    parts_.resize(static_cast<size_t>(2 * n));
  run(nullptr);
  space_.allocate();
}

template <typename T>
int Eig<T>::run(C* values) {
  if constexpr (is_complex_v<T>)
    return lapack::geev(job_, n_, columns_.data(), n_, values, vectors_.data(), n_, space_);
  else
    return lapack::geev(job_, n_, columns_.data(), n_, parts_.data(), parts_.data() + n_, vectors_.data(), n_, space_);
}

template <typename T>
int32_t Eig<T>::decompose(const T* a, C* values, C* vectors) {
  if (!all_finite(a, int64_t{n_} * n_)) return n_;
  transpose_copy(a, n_, n_, columns_.data());
  if (const int info = run(values); info != 0) return info;
  if constexpr (is_complex_v<T>) {
    if (job_ == 'V') transpose_copy(vectors_.data(), n_, n_, vectors);
  } else {
    const real_of_t<T>*re = parts_.data(), *im = re + n_;
    for (int i = 0; i < n_; ++i) values[i] = {re[i], im[i]};
    if (job_ == 'V') paired_vectors(vectors_.data(), im, n_, vectors);
  }
  return 0;
}

template <typename T>
Svd<T>::Svd(int64_t m, int64_t n, SingularVectors vectors) : m_(to_lapack_int(m)), n_(to_lapack_int(n)) {
  const int k = std::min(m_, n_);
  // Sizes from LAPACK's documentation, with a block size of 64. For complex matrices the real workspace is the
  // largest.
  const double small = k, large = std::max(m_, n_);
  check_lapack_sizes(64 * (small + large) + (vectors == SingularVectors::kNone ? 0 : 5 * small * small));
  if (is_complex_v<T>) check_lapack_sizes(small * std::max(5 * small + 7, 2 * large + 2 * small + 1));
  columns_.resize(lapack::padded_elements(m, n));
  if (vectors != SingularVectors::kNone) {
    job_ = vectors == SingularVectors::kFull ? 'A' : 'S';
    u_columns_ = job_ == 'A' ? m_ : k;
    vh_rows_ = job_ == 'A' ? n_ : k;
    u_.resize(lapack::padded_elements(m, u_columns_));
    vh_.resize(lapack::padded_elements(vh_rows_, n));
  }
  space_.integers.resize(static_cast<size_t>(8 * int64_t{k}));
  if constexpr (is_complex_v<T>) {
    const double reals = job_ == 'N' ? 7 * small : small * std::max(5 * small + 7, 2 * large + 2 * small + 1);
    space_.reals.resize(static_cast<size_t>(reals));
  }
  run(nullptr);
  space_.allocate();
}

template <typename T>
int Svd<T>::run(real_of_t<T>* s) {
  return lapack::gesdd(job_, m_, n_, columns_.data(), m_, s, u_.data(), m_, vh_.data(), vh_rows_, space_);
}

template <typename T>
int32_t Svd<T>::decompose(const T* a, T* u, real_of_t<T>* s, T* vh) {
  if (!all_finite(a, int64_t{m_} * n_)) return std::min(m_, n_);
  transpose_copy(a, m_, n_, columns_.data());
  if (const int info = run(s); info != 0) return info;
  if (job_ != 'N') {
    transpose_copy(u_.data(), u_columns_, m_, u);
    transpose_copy(vh_.data(), n_, vh_rows_, vh);
  }
  return 0;
}

#define TT_SPECTRA_OF(T)  \
  template class Eigh<T>; \
  template class Eig<T>;  \
  template class Svd<T>;
TT_SPECTRA_OF(float)
TT_SPECTRA_OF(double)
TT_SPECTRA_OF(Complex<float>)
TT_SPECTRA_OF(Complex<double>)
#undef TT_SPECTRA_OF

}  // namespace tt::cpu
