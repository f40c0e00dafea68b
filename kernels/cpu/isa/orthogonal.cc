// Householder's QR.
#include "kernels/cpu/isa/eigen.h"

#include <Eigen/Householder>
#include <Eigen/QR>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace tt::cpu::TT_ISA {
namespace {

// What to divide a matrix by so that squares of its elements neither overflow nor vanish; 1 where they do not.
template <typename R>
R scale_of(R largest) {
  constexpr int kFar = std::numeric_limits<R>::max_exponent / 4;
  if (!(largest > 0) || !std::isfinite(largest) || std::abs(std::ilogb(largest)) < kFar) return R(1);
  return std::ldexp(R(1), std::ilogb(largest));
}

// Eigen's factors are those of the reflections that take a to R; LAPACK's, and ours, of their adjoints.
template <typename T>
void householder(T* a, int64_t m, int64_t n, T* tau) {
  Eigen::HouseholderQR<ColumnMatrix<T>> qr(m, n);
  auto matrix = row_map(a, m, n);
  const auto scale = scale_of(matrix.size() > 0 ? matrix.cwiseAbs().maxCoeff() : 0);
  qr.compute(matrix / scale);
  matrix = qr.matrixQR();
  matrix.template triangularView<Eigen::Upper>() *= scale;  // R grows with a, the reflections do not
  vector_map(tau, m < n ? m : n) = qr.hCoeffs().conjugate();
}

template <typename T>
void orthogonal(const T* a, const T* tau, int64_t m, int64_t n, int64_t k, T* q) {
  const ColumnMatrix<T> vectors = row_map(a, m, n);
  const Vector<T> factors = vector_map(tau, m < n ? m : n);
  ColumnMatrix<T> columns = ColumnMatrix<T>::Identity(m, k);
  columns.applyOnTheLeft(Eigen::householderSequence(vectors, factors).setLength(factors.size()));
  row_map(q, m, k) = columns;
}

}  // namespace

void add_orthogonal(MatrixTable* table) {
  table->f32.householder = &householder<float>;
  table->f64.householder = &householder<double>;
  table->c64.householder = &householder<Complex<float>>;
  table->c128.householder = &householder<Complex<double>>;
  table->f32.orthogonal = &orthogonal<float>;
  table->f64.orthogonal = &orthogonal<double>;
  table->c64.orthogonal = &orthogonal<Complex<float>>;
  table->c128.orthogonal = &orthogonal<Complex<double>>;
}

}  // namespace tt::cpu::TT_ISA
