// The exponential of a matrix: Padé approximants with scaling and squaring (Higham 2005).
#include "kernels/cpu/isa/eigen.h"

#include <unsupported/Eigen/MatrixFunctions>

namespace tt::cpu::TT_ISA {
namespace {

template <typename T>
void exponential(const T* a, int64_t n, T* out) {
  const ColumnMatrix<T> matrix = row_map(a, n, n);
  const ColumnMatrix<T> result = matrix.exp();
  row_map(out, n, n) = result;
}

}  // namespace

void add_exponential(MatrixTable* table) {
  table->f32.exponential = &exponential<float>;
  table->f64.exponential = &exponential<double>;
  table->c64.exponential = &exponential<Complex<float>>;
  table->c128.exponential = &exponential<Complex<double>>;
}

}  // namespace tt::cpu::TT_ISA
