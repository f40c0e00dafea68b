// Singular values by divide and conquer, which below 16 columns is Jacobi's method. A source for each
// type: they take longer to compile than anything else here.
#pragma once

#include "kernels/cpu/isa/eigen.h"

#include <Eigen/SVD>

namespace tt::cpu::TT_ISA {

template <typename T>
int32_t svd(const T* a, int64_t m, int64_t n, bool full, T* u, real_of_t<T>* s, T* vh) {
  const int64_t k = m < n ? m : n;
  const ColumnMatrix<T> matrix = row_map(a, m, n);
  if (!matrix.allFinite()) return static_cast<int32_t>(k);
  const unsigned vectors = full ? Eigen::ComputeFullU | Eigen::ComputeFullV : Eigen::ComputeThinU | Eigen::ComputeThinV;
  const Eigen::BDCSVD<ColumnMatrix<T>> solver(matrix, u ? vectors : 0);
  if (solver.info() != Eigen::Success) return static_cast<int32_t>(k);
  vector_map(s, k) = solver.singularValues();
  if (u) {
    row_map(u, m, full ? m : k) = solver.matrixU();
    row_map(vh, full ? n : k, n) = solver.matrixV().adjoint();
  }
  return 0;
}

void add_single_svd(MatrixTable* table);
void add_complex_svd(MatrixTable* table);
void add_single_complex_svd(MatrixTable* table);

}  // namespace tt::cpu::TT_ISA
