// Householder's QR.
#include "kernels/cpu/isa/eigen.h"

#include <Eigen/Householder>
#include <Eigen/QR>

namespace tt::cpu::TT_ISA {
namespace {

template <typename T>
void householder(T* a, int64_t m, int64_t n, T* tau) {
  Eigen::HouseholderQR<ColumnMatrix<T>> qr(m, n);
  RowMap<T> matrix(a, m, n);
  qr.compute(matrix);
  matrix = qr.matrixQR();
  Eigen::Map<Vector<T>>(tau, m < n ? m : n) = qr.hCoeffs();
}

template <typename T>
void orthogonal(const T* a, const T* tau, int64_t m, int64_t n, int64_t k, T* q) {
  const ColumnMatrix<T> vectors = ConstRowMap<T>(a, m, n);
  const Vector<T> factors = Eigen::Map<const Vector<T>>(tau, m < n ? m : n);
  ColumnMatrix<T> columns = ColumnMatrix<T>::Identity(m, k);
  columns.applyOnTheLeft(Eigen::householderSequence(vectors, factors).setLength(factors.size()));
  RowMap<T>(q, m, k) = columns;
}

}  // namespace

void add_orthogonal(MatrixTable* table) {
  table->f32.householder = &householder<float>;
  table->f64.householder = &householder<double>;
  table->f32.orthogonal = &orthogonal<float>;
  table->f64.orthogonal = &orthogonal<double>;
}

}  // namespace tt::cpu::TT_ISA
