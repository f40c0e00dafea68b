// Solves systems with triangular CSR matrices by substitution.
#include <algorithm>

#include "engine/device/parallel.h"
#include "engine/schema/error.h"
#include "kernels/common/math/complex.h"
#include "kernels/cpu/iteration/contiguous.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/sparse/indices.h"

namespace tt::cpu {
namespace {

template <typename T>
struct Triangle {
  const int64_t *crow, *col;
  const T* values;
  int64_t n;
  bool upper, unit;

  bool is_inside(int64_t row, int64_t column) const { return upper ? column > row : column < row; }
  T diagonal(int64_t row) const {
    if (unit) return T(1);
    T sum{};
    for (int64_t i = crow[row]; i < crow[row + 1]; ++i) {
      if (col[i] == row) sum += values[i];
    }
    return sum;
  }
};

// Solves for the columns [begin, end) of x, k columns, in place. Rows are final before they are used: the first or the
// last is solved first.
template <typename T>
void substitute(const Triangle<T>& a, bool transpose, int64_t begin, int64_t end, int64_t k, T* x) {
  const bool forward = a.upper == transpose;
  for (int64_t step = 0; step < a.n; ++step) {
    const int64_t r = forward ? step : a.n - 1 - step;
    T* row = x + r * k;
    const auto divide = [&] {
      if (a.unit) return;
      const T d = a.diagonal(r);
      for (int64_t j = begin; j < end; ++j) row[j] = row[j] / d;
    };
    if (transpose) divide();
    for (int64_t i = a.crow[r]; i < a.crow[r + 1]; ++i) {
      if (!a.is_inside(r, a.col[i])) continue;
      T* other = x + a.col[i] * k;
      const T value = a.values[i];
      for (int64_t j = begin; j < end; ++j) {
        if (transpose) {
          other[j] -= value * row[j];
        } else {
          row[j] -= value * other[j];
        }
      }
    }
    if (!transpose) divide();
  }
}

template <typename F>
void with_inexact(DType dtype, F f) {
  switch (dtype) {
    case DType::kFloat32: return f(std::type_identity<float>());
    case DType::kFloat64: return f(std::type_identity<double>());
    case DType::kComplex64: return f(std::type_identity<Complex<float>>());
    case DType::kComplex128: return f(std::type_identity<Complex<double>>());
    default: fail(ErrorKind::kNotImplemented, "not implemented for ", name(dtype));
  }
}

}  // namespace

void sparse_csr_triangular_solve(const Tensor& crow, const Tensor& col, const Tensor& values, const Tensor& other,
                                 bool upper, bool transpose, bool unitriangular, Tensor& out) {
  const int64_t n = other.size(0), k = other.size(1);
  const Csr csr = checked_csr(crow, col, n);
  const Tensor factors = contiguous(values), right = contiguous(other);
  with_inexact(values.dtype(), [&]<typename T>(std::type_identity<T>) {
    std::copy_n(right.data_as<T>(), right.numel(), out.data_as<T>());
    const Triangle<T> a{csr.crow(0), csr.col(0), factors.data_as<T>(), n, upper, unitriangular};
    parallel_for(k, std::max<int64_t>(8, (1 << 15) / std::max<int64_t>(csr.nnz, 1)),
                 [&](int64_t begin, int64_t end) { substitute(a, transpose, begin, end, k, out.data_as<T>()); });
  });
}

}  // namespace tt::cpu
