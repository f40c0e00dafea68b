// LU, Cholesky, and solving with triangles.
#include "kernels/cpu/isa/eigen.h"

#include <Eigen/Cholesky>
#include <Eigen/LU>

namespace tt::cpu::TT_ISA {
namespace {

template <typename T>
int32_t lu(T* a, int64_t m, int64_t n, int32_t* pivots) {
  int32_t exchanged = 0;
  const auto zero = Eigen::internal::partial_lu_impl<scalar_t<T>, Eigen::RowMajor, int32_t>::blocked_lu(
      m, n, scalars(a), n, pivots, exchanged);
  for (int64_t i = 0; i < (m < n ? m : n); ++i) ++pivots[i];
  return static_cast<int32_t>(zero + 1);
}

template <typename T>
int32_t cholesky(T* a, int64_t n) {
  auto matrix = row_map(a, n, n);
  const auto failed = Eigen::internal::llt_inplace<scalar_t<T>, Eigen::Lower>::blocked(matrix);
  return static_cast<int32_t>(failed + 1);
}

template <unsigned Mode, typename A, typename B>
void solve_mode(const A& a, B& b, bool unit) {
  if (unit)
    a.template triangularView<Mode | Eigen::UnitDiag>().solveInPlace(b);
  else
    a.template triangularView<Mode>().solveInPlace(b);
}

template <typename T>
void solve_triangular(const T* a, T* b, int64_t n, int64_t k, bool upper, bool transposed, bool unit) {
  const auto matrix = row_map(a, n, n);
  auto right = row_map(b, n, k);
  if (transposed && upper)
    solve_mode<Eigen::Lower>(matrix.transpose(), right, unit);
  else if (transposed)
    solve_mode<Eigen::Upper>(matrix.transpose(), right, unit);
  else if (upper)
    solve_mode<Eigen::Upper>(matrix, right, unit);
  else
    solve_mode<Eigen::Lower>(matrix, right, unit);
}

}  // namespace

void add_triangular(MatrixTable* table) {
  table->f32.lu = &lu<float>;
  table->f64.lu = &lu<double>;
  table->c64.lu = &lu<Complex<float>>;
  table->c128.lu = &lu<Complex<double>>;
  table->f32.cholesky = &cholesky<float>;
  table->f64.cholesky = &cholesky<double>;
  table->c64.cholesky = &cholesky<Complex<float>>;
  table->c128.cholesky = &cholesky<Complex<double>>;
  table->f32.solve_triangular = &solve_triangular<float>;
  table->f64.solve_triangular = &solve_triangular<double>;
  table->c64.solve_triangular = &solve_triangular<Complex<float>>;
  table->c128.solve_triangular = &solve_triangular<Complex<double>>;
}

}  // namespace tt::cpu::TT_ISA
