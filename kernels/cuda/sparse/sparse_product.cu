// Products of two CSR matrices: all of their entries, or those at given positions.
//
// All entries: each product of an entry of the first matrix with one of the second is written out, the products are
// sorted by row and column, and those of equal positions are added, in the order of the entries. Memory and time are
// proportional to the number of products.
#include "engine/schema/checked_math.h"
#include "kernels/common/iteration/accumulate_type.h"
#include "kernels/cuda/index/selection.h"
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch/inclusive_scan.h"
#include "kernels/cuda/sparse/columns.h"
#include "kernels/cuda/sparse/product_type.h"

namespace tt::cuda {
namespace {

// The number of products of an entry of the first matrix: the length of a row of the second.
struct LoadLength {
  const int64_t *col, *crow;
  TT_FUNCTION int64_t operator()(int64_t i) const { return crow[col[i] + 1] - crow[col[i]]; }
};
struct StoreEnd {
  int64_t* ends;
  TT_FUNCTION void operator()(int64_t i, int64_t end) const { ends[i] = end; }
};

// ends[i]: the number of products of the first i + 1 entries of a.
Tensor product_ends(const Csr& a, const Csr& b) {
  Tensor ends = empty({a.nnz}, DType::kInt64, a.plain.device());
  inclusive_scan(queue_of(ends), a.nnz, LoadLength{a.view().col, b.view().crow}, Add(),
                 StoreEnd{ends.data_as<int64_t>()});
  return ends;
}

// Writes the row, the column and the value of each product. `positions`: (2, products).
template <typename T>
void expand(const Csr& a, const Tensor& values1, const Csr& b, const Tensor& values2, const Tensor& ends,
            const Tensor& positions, const Tensor& products) {
  using C = SumType<T>;
  const CsrView first = a.view(), second = b.view();
  const int64_t entries = a.nnz, n = products.numel();
  const int64_t* end = ends.data_as<int64_t>();
  const T *x = values1.data_as<T>(), *y = values2.data_as<T>();
  int64_t* position = positions.data_as<int64_t>();
  C* product = products.data_as<C>();
  for_each(queue_of(products), n, [=] TT_DEVICE(int64_t p) {
    const int64_t i = insertion_point(end, entries, p, true), k = first.col[i];
    const int64_t j = second.crow[k + 1] - (end[i] - p);
    position[p] = first.row_of(i);
    position[n + p] = second.col[j];
    product[p] = static_cast<C>(convert<C>(x[i]) * convert<C>(y[j]));
  });
}

// starts[r]: the number of sorted positions in the rows before r.
void write_starts(const Tensor& rows, const Tensor& starts) {
  const int64_t n = rows.numel();
  const int64_t* row = rows.data_as<int64_t>();
  int64_t* start = starts.data_as<int64_t>();
  for_each(queue_of(starts), starts.numel(),
           [=] TT_DEVICE(int64_t r) { start[r] = insertion_point(row, n, r, false); });
}

Tensor row_of(const Tensor& matrix, int64_t r) {
  const int64_t n = matrix.size(1);
  return view_of(matrix, Geometry{{n}, {1}, matrix->offset + r * n});
}

}  // namespace

void sparse_csr_matmul(const Tensor& crow1, const Tensor& col1, const Tensor& values1, const Tensor& crow2,
                       const Tensor& col2, const Tensor& values2, int64_t columns, Tensor& crow, Tensor& col,
                       Tensor& values) {
  check_csr_components(crow1, col1, values1);
  check_csr_components(crow2, col2, values2);
  check(columns >= 0, "expected a size of 0 or more, got ", columns);
  const Device device = crow1.device();
  DeviceErrorCell* cell = open_index_cell(queue_of(crow1));
  const Csr a = checked_csr(crow1, col1, crow2.size(0) - 1, cell), b = checked_csr(crow2, col2, columns, cell);
  checked_mul(a.nnz, b.nnz);  // products at most, which product_ends() adds
  const Tensor x = contiguous(values1), y = contiguous(values2), ends = product_ends(a, b);
  const Tensor& waited = a.nnz > 0 ? ends : b.compressed;
  const int64_t last = value_of(view_of(waited, Geometry{{}, {}, waited->offset + waited.numel() - 1}));
  throw_reported(cell);
  const int64_t n = a.nnz > 0 ? last : 0;
  Tensor positions = empty({2, n}, DType::kInt64, device);
  const Tensor products = empty({n}, accumulate_type(values1.dtype()), device);
  with_product_element(values1.dtype(),
                       [&]<typename T>(std::type_identity<T>) { expand<T>(a, x, b, y, ends, positions, products); });
  const Columns of_products(std::move(positions), {a.rows, columns});
  const Runs runs = runs_of(of_products, empty({n}, DType::kInt64, device));
  const Tensor distinct = distinct_columns(of_products, runs), starts = empty({a.rows + 1}, DType::kInt64, device);
  values = empty({runs.count}, values1.dtype(), device);
  sum_runs(runs, products, values);
  write_starts(row_of(distinct, 0), starts);
  crow = contiguous_as(starts, crow1.dtype());
  col = empty({runs.count}, crow1.dtype(), device);
  copy(row_of(distinct, 1), col);
}

namespace {

// The entries of each row in the order of their columns.
struct SortedRows {
  Tensor columns, order;  // int64
};

SortedRows sort_rows(const Csr& csr, int64_t columns) {
  const Queue queue = queue_of(csr.plain);
  Tensor positions = empty({2, csr.nnz}, DType::kInt64, queue.device());
  const Tensor in_order = empty({csr.nnz}, DType::kInt64, queue.device());
  const CsrView matrix = csr.view();
  int64_t *position = positions.data_as<int64_t>(), *to = in_order.data_as<int64_t>();
  for_each(queue, matrix.nnz, [=] TT_DEVICE(int64_t i) {
    position[i] = matrix.row_of(i);
    position[matrix.nnz + i] = matrix.col[i];
  });
  const Tensor order = Columns(std::move(positions), {csr.rows, columns}).sorted_order();
  const int64_t* from = order.data_as<int64_t>();
  for_each(queue, matrix.nnz, [=] TT_DEVICE(int64_t i) { to[i] = matrix.col[from[i]]; });
  return {in_order, order};
}

// Products of a row of the first matrix, sorted by column, with the entries of a row of the second.
template <typename T>
struct RowPairs {
  using C = SumType<T>;
  CsrView first, second, at;
  const int64_t *columns, *order;  // of the first matrix
  const T *x, *y;

  // The sum over every step-th entry of the second matrix's row, from `offset` on, for one of the given positions.
  TT_DEVICE C sum(int64_t position, int64_t offset, int64_t step) const {
    const int64_t row = at.row_of(position), other = at.col[position];
    const int64_t begin = first.crow[row], end = first.crow[row + 1];
    C total{};
    for (int64_t j = second.crow[other] + offset; j < second.crow[other + 1]; j += step) {
      const int64_t column = second.col[j];
      C factor{};
      int64_t i = begin + insertion_point(columns + begin, end - begin, column, false);
      if (i == end || columns[i] != column) continue;
      for (; i < end && columns[i] == column; ++i) factor = static_cast<C>(factor + convert<C>(x[order[i]]));
      total = static_cast<C>(total + factor * convert<C>(y[j]));
    }
    return total;
  }
};

template <typename T>
void multiply_pairs(const Queue& queue, const RowPairs<T>& pairs, int64_t row_length, T* out) {
  using C = SumType<T>;
  if (row_length >= kLongRow) {
    return for_each_group(queue, pairs.at.nnz, row_length, [=] TT_DEVICE(Group & group) {
      const C sum = group.reduce(pairs.sum(group.index(), group.rank(), group.size()), Sum());
      if (group.rank() == 0) out[group.index()] = convert<T>(sum);
    });
  }
  for_each(queue, pairs.at.nnz, [=] TT_DEVICE(int64_t i) { out[i] = convert<T>(pairs.sum(i, 0, 1)); });
}

}  // namespace

void sparse_csr_sampled_matmul(const Tensor& crow1, const Tensor& col1, const Tensor& values1, const Tensor& crow2,
                               const Tensor& col2, const Tensor& values2, const Tensor& crow, const Tensor& col,
                               int64_t columns, Tensor& out) {
  DeviceErrorCell* cell = open_index_cell(queue_of(out));
  const Csr a = checked_csr(crow1, col1, columns, cell), b = checked_csr(crow2, col2, columns, cell);
  const Csr at = checked_csr(crow, col, b.rows, cell);
  throw_reported_if_empty(out, at.compressed, cell);
  const SortedRows sorted = sort_rows(a, columns);
  const Tensor x = contiguous(values1), y = contiguous(values2);
  with_product_element(out.dtype(), [&]<typename T>(std::type_identity<T>) {
    const RowPairs<T> pairs{
        a.view(),       b.view(),      at.view(), sorted.columns.data_as<int64_t>(), sorted.order.data_as<int64_t>(),
        x.data_as<T>(), y.data_as<T>()};
    multiply_pairs(queue_of(out), pairs, b.row_length(), out.data_as<T>());
  });
}

}  // namespace tt::cuda
