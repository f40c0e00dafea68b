// Eigenvalues and eigenvectors of symmetric matrices.
#include "kernels/cpu/isa/eigen.h"

#include <Eigen/Eigenvalues>

namespace tt::cpu::TT_ISA {
namespace {

template <typename T>
int32_t eigh(const T* a, int64_t n, T* values, T* vectors) {
  // The row-major matrix's lower triangle is the column-major one's upper.
  const ColumnMatrix<T> matrix = ConstRowMap<T>(a, n, n);
  if (!matrix.allFinite()) return static_cast<int32_t>(n);
  const Eigen::SelfAdjointEigenSolver<ColumnMatrix<T>> solver(
      matrix, vectors ? Eigen::ComputeEigenvectors : Eigen::EigenvaluesOnly);
  if (solver.info() != Eigen::Success) return static_cast<int32_t>(n);
  Eigen::Map<Vector<T>>(values, n) = solver.eigenvalues();
  if (vectors) RowMap<T>(vectors, n, n) = solver.eigenvectors();
  return 0;
}

}  // namespace

void add_eigh(MatrixTable* table) {
  table->f32.eigh = &eigh<float>;
  table->f64.eigh = &eigh<double>;
}

}  // namespace tt::cpu::TT_ISA
