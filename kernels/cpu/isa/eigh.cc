// Eigenvalues and eigenvectors of symmetric and Hermitian matrices.
#include "kernels/cpu/isa/eigen.h"

#include <Eigen/Eigenvalues>

namespace tt::cpu::TT_ISA {
namespace {

template <typename T>
int32_t eigh(const T* a, int64_t n, real_of_t<T>* values, T* vectors) {
  const ColumnMatrix<T> matrix = row_map(a, n, n);
  if (!matrix.allFinite()) return static_cast<int32_t>(n);
  const Eigen::SelfAdjointEigenSolver<ColumnMatrix<T>> solver(
      matrix, vectors ? Eigen::ComputeEigenvectors : Eigen::EigenvaluesOnly);
  if (solver.info() != Eigen::Success) return static_cast<int32_t>(n);
  vector_map(values, n) = solver.eigenvalues();
  if (vectors) row_map(vectors, n, n) = solver.eigenvectors();
  return 0;
}

}  // namespace

void add_eigh(MatrixTable* table) {
  table->f32.eigh = &eigh<float>;
  table->f64.eigh = &eigh<double>;
  table->c64.eigh = &eigh<Complex<float>>;
  table->c128.eigh = &eigh<Complex<double>>;
}

}  // namespace tt::cpu::TT_ISA
