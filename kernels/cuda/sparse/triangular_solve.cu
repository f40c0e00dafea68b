// Solves systems with triangular CSR matrices by substitution. A group of threads solves for one column of the right
// side: rows one after the other, the entries of a row in parallel.
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/sparse/indices.h"

namespace tt::cuda {
namespace {

// The entries of a row are order[i] for i in [starts[row], starts[row + 1]); in a null order, they are i.
template <typename T>
struct Triangle {
  const int64_t *starts, *col, *order;
  const T* values;
  int64_t n, row_length;
  bool upper, unit;
};

// Sums over the entries of a row: of products with the solution inside the triangle, and of diagonal elements.
template <typename T>
struct RowSums {
  T products, diagonal;
};
struct AddSums {
  template <typename T>
  TT_FUNCTION RowSums<T> operator()(RowSums<T> a, RowSums<T> b) const {
    return {a.products + b.products, a.diagonal + b.diagonal};
  }
};

// Solves in place: x has k columns.
template <typename T>
void substitute(const Queue& queue, const Triangle<T>& a, int64_t k, T* x) {
  for_each_group(queue, k, a.row_length, [=] TT_DEVICE(Group & group) {
    const int64_t column = group.index();
    for (int64_t step = 0; step < a.n; ++step) {
      const int64_t row = a.upper ? a.n - 1 - step : step, end = a.starts[row + 1];
      RowSums<T> sums{T(0), T(0)};
      for (int64_t i = a.starts[row] + group.rank(); i < end; i += group.size()) {
        const int64_t at = a.col[i];
        const T value = a.values[a.order ? a.order[i] : i];
        if (at == row) sums.diagonal += value;
        if (a.upper ? at > row : at < row) sums.products += value * x[at * k + column];
      }
      sums = group.reduce(sums, AddSums());
      if (group.rank() == 0) {
        const T rest = x[row * k + column] - sums.products;
        x[row * k + column] = a.unit ? rest : rest / sums.diagonal;
      }
      group.sync();  // later rows read the element
    }
  });
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
  DeviceErrorCell* cell = open_index_cell(queue_of(out));
  const Csr csr = checked_csr(crow, col, n, cell);
  copy(other, out);
  if (out.numel() == 0) return throw_reported_if_empty(out, csr.compressed, cell);
  const Tensor factors = contiguous(values);
  const SortedByColumn sorted = transpose ? sorted_by_column(csr, n) : SortedByColumn();
  with_inexact(values.dtype(), [&]<typename T>(std::type_identity<T>) {
    const int64_t* order = transpose ? sorted.order.data_as<int64_t>() : nullptr;
    const Tensor &starts = transpose ? sorted.starts : csr.compressed, &columns = transpose ? sorted.rows : csr.plain;
    const Triangle<T> a{starts.data_as<int64_t>(), columns.data_as<int64_t>(), order,        factors.data_as<T>(), n,
                        csr.row_length(),          upper != transpose,         unitriangular};
    substitute(queue_of(out), a, k, out.data_as<T>());
  });
}

}  // namespace tt::cuda
