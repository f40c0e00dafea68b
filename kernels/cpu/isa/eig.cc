// Eigenvalues and eigenvectors of general matrices: both are complex, of real matrices too.
#include "kernels/cpu/isa/eigen.h"

#include <Eigen/Eigenvalues>
#include <type_traits>

namespace tt::cpu::TT_ISA {
namespace {

template <typename T>
using EigSolver = std::conditional_t<is_complex_v<T>, Eigen::ComplexEigenSolver<ColumnMatrix<T>>,
                                     Eigen::EigenSolver<ColumnMatrix<T>>>;

template <typename T>
int32_t eig(const T* a, int64_t n, Complex<real_of_t<T>>* values, Complex<real_of_t<T>>* vectors) {
  const ColumnMatrix<T> matrix = row_map(a, n, n);
  if (!matrix.allFinite()) return static_cast<int32_t>(n);
  const EigSolver<T> solver(matrix, vectors != nullptr);
  if (solver.info() != Eigen::Success) return static_cast<int32_t>(n);
  vector_map(values, n) = solver.eigenvalues();
  if (vectors) row_map(vectors, n, n) = solver.eigenvectors();
  return 0;
}

}  // namespace

void add_eig(MatrixTable* table) {
  table->f32.eig = &eig<float>;
  table->f64.eig = &eig<double>;
  table->c64.eig = &eig<Complex<float>>;
  table->c128.eig = &eig<Complex<double>>;
}

}  // namespace tt::cpu::TT_ISA
