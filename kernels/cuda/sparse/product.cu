// Products of CSR, BSR and 2:4 matrices with dense ones, and the products of rows at the positions of a CSR matrix.
//
// Products with CSR matrices and their transposes are sums of rows (row_sums.h). Otherwise a thread, or a group of
// threads for each pair of long rows, computes an element of the result.
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/sparse/indices.h"
#include "kernels/cuda/sparse/product_type.h"
#include "kernels/cuda/sparse/row_sums.h"
#include "kernels/cuda/sparse/semi_position.h"

namespace tt::cuda {
namespace {

// A batch of dense matrices of m rows and k columns. `m` counts rows of blocks.
template <typename T>
struct Dense {
  const T* data;
  int64_t m, k;
};

template <typename T>
Dense<T> dense_of(const Tensor& t, int64_t block_rows = 1) {
  return {t.data_as<T>(), t.size(-2) / block_rows, t.size(-1)};
}

template <typename C, typename T>
TT_DEVICE C product(T a, T b) {
  return static_cast<C>(convert<C>(a) * convert<C>(b));
}

// The entries of rows of CSR matrices. A term is the product of a value with an element of the dense matrix.
template <typename T>
struct RowEntries {
  using C = SumType<T>;
  CsrView matrices;
  IndexRange columns;
  const T* values;
  Dense<T> other;

  TT_FUNCTION EntryRow row(int64_t r) const { return {matrices.begin(r), matrices.end(r), r / matrices.rows}; }
  TT_DEVICE C term(const EntryRow& row, int64_t entry, int64_t column) const {
    const int64_t at = row.matrix * other.m + columns.checked(matrices.col[entry]);
    return product<C>(values[entry], other.data[at * other.k + column]);
  }
};

// The product with blocks of p rows and q columns.
template <typename T>
void multiply_blocks(const Queue& queue, const RowEntries<T>& rows, int64_t p, int64_t q, T* out, int64_t n) {
  using C = SumType<T>;
  const CsrView matrices = rows.matrices;
  const Dense<T> other = rows.other;
  for_each(queue, n, [=] TT_DEVICE(int64_t at) {
    const int64_t row = at / other.k, column = at % other.k, blocks = row / p, matrix = blocks / matrices.rows;
    C sum{};
    const int64_t end = matrices.end(blocks);
    for (int64_t i = matrices.begin(blocks); i < end; ++i) {
      const int64_t first = (matrix * other.m + rows.columns.checked(matrices.col[i])) * q;
      const T* value = rows.values + (i * p + row % p) * q;
      for (int64_t c = 0; c < q; ++c) {
        sum = static_cast<C>(sum + product<C>(value[c], other.data[(first + c) * other.k + column]));
      }
    }
    out[at] = convert<T>(sum);
  });
}

// out = matrices @ other, where blocks have p rows and q columns.
void multiply_batch(const Tensor& crow, const Tensor& col, const Tensor& values, const Tensor& other, int64_t p,
                    int64_t q, Tensor& out) {
  DeviceErrorCell* cell = open_index_cell(queue_of(out));
  const Csr csr = compressed_indices(crow, col, cell);
  const IndexRange columns = index_range(col, other.size(-2) / q, cell);
  const Tensor factors = contiguous(values), dense = contiguous(other);
  const Queue queue = queue_of(out);
  with_product_element(out.dtype(), [&]<typename T>(std::type_identity<T>) {
    const RowEntries<T> rows{csr.view(), columns, factors.data_as<T>(), dense_of<T>(dense, q)};
    if (p == 1 && q == 1) {
      return sum_rows(queue, rows, csr.batch * csr.rows, other.size(-1), csr.entries(), out.data_as<T>());
    }
    multiply_blocks(queue, rows, p, q, out.data_as<T>(), out.numel());
  });
  if (out.numel() == 0) checked_positions(col, columns.size, cell);  // no thread has read the indices
  throw_reported_if_empty(out, csr.compressed, cell);
}

}  // namespace

void sparse_csr_mm(const Tensor& crow, const Tensor& col, const Tensor& values, const Tensor& other, Tensor& out) {
  multiply_batch(crow, col, values, other, 1, 1, out);
}

void sparse_bsr_mm(const Tensor& crow, const Tensor& col, const Tensor& values, const Tensor& other, Tensor& out) {
  multiply_batch(crow, col, values, other, values.size(-2), values.size(-1), out);
}

namespace {

// The entries of rows of the transposes: those of CSR matrices in the order of their columns.
template <typename T>
struct ColumnEntries {
  using C = SumType<T>;
  const int64_t *starts, *order, *rows;
  int64_t columns, nnz;
  const T* values;
  Dense<T> other;

  TT_FUNCTION EntryRow row(int64_t r) const {
    const int64_t matrix = r / columns, first = matrix * nnz;
    return {first + starts[r + matrix], first + starts[r + matrix + 1], matrix};
  }
  TT_DEVICE C term(const EntryRow& row, int64_t place, int64_t column) const {
    return product<C>(values[order[place]], other.data[(row.matrix * other.m + rows[place]) * other.k + column]);
  }
};

}  // namespace

void sparse_csr_mm_transposed(const Tensor& crow, const Tensor& col, const Tensor& values, const Tensor& other,
                              int64_t columns, Tensor& out) {
  DeviceErrorCell* cell = open_index_cell(queue_of(out));
  const Csr csr = checked_csr(crow, col, columns, cell);
  if (out.numel() == 0) return throw_reported_if_empty(out, csr.compressed, cell);
  const SortedByColumn sorted = sorted_by_column(csr, columns);
  const Tensor factors = contiguous(values), dense = contiguous(other);
  with_product_element(out.dtype(), [&]<typename T>(std::type_identity<T>) {
    const ColumnEntries<T> transposed{sorted.starts.data_as<int64_t>(),
                                      sorted.order.data_as<int64_t>(),
                                      sorted.rows.data_as<int64_t>(),
                                      columns,
                                      csr.nnz,
                                      factors.data_as<T>(),
                                      dense_of<T>(dense)};
    sum_rows(queue_of(out), transposed, csr.batch * columns, other.size(-1), csr.entries(), out.data_as<T>());
  });
}

namespace {

// out[i] = the product of the rows of x and y at the position of entry i.
template <typename T>
void multiply_sampled(const Queue& queue, const CsrView& matrices, IndexRange columns, Dense<T> x, Dense<T> y, T* out,
                      int64_t n) {
  using C = SumType<T>;
  const int64_t k = x.k;
  if (k >= kLongRow) {
    return for_each_group(queue, n, k, [=] TT_DEVICE(Group & group) {
      const int64_t entry = group.index(), matrix = entry / matrices.nnz;
      const T* a = x.data + (matrix * x.m + matrices.row_of(entry)) * k;
      const T* b = y.data + (matrix * y.m + columns.checked(matrices.col[entry])) * k;
      C sum{};
      for (int64_t i = group.rank(); i < k; i += group.size()) sum = static_cast<C>(sum + product<C>(a[i], b[i]));
      sum = group.reduce(sum, Sum());
      if (group.rank() == 0) out[entry] = convert<T>(sum);
    });
  }
  for_each(queue, n, [=] TT_DEVICE(int64_t entry) {
    const int64_t matrix = entry / matrices.nnz;
    const T* a = x.data + (matrix * x.m + matrices.row_of(entry)) * k;
    const T* b = y.data + (matrix * y.m + columns.checked(matrices.col[entry])) * k;
    C sum{};
    for (int64_t i = 0; i < k; ++i) sum = static_cast<C>(sum + product<C>(a[i], b[i]));
    out[entry] = convert<T>(sum);
  });
}

}  // namespace

void sparse_csr_sddmm(const Tensor& crow, const Tensor& col, const Tensor& input, const Tensor& other, Tensor& out) {
  DeviceErrorCell* cell = open_index_cell(queue_of(out));
  const Csr csr = compressed_indices(crow, col, cell);
  const IndexRange columns = index_range(col, other.size(-2), cell);
  const Tensor x = contiguous(input), y = contiguous(other);
  with_product_element(out.dtype(), [&]<typename T>(std::type_identity<T>) {
    multiply_sampled(queue_of(out), csr.view(), columns, dense_of<T>(x), dense_of<T>(y), out.data_as<T>(), out.numel());
  });
  throw_reported_if_empty(out, csr.compressed, cell);
}

namespace {

template <typename T>
void multiply_semi(const Queue& queue, const T* values, int64_t each, const int16_t* meta, Dense<T> other, T* out,
                   int64_t n) {
  using C = SumType<T>;
  const int64_t k = other.k;
  for_each(queue, n, [=] TT_DEVICE(int64_t at) {
    const int64_t first = at / k * each, column = at % k;
    C sum{};
    for (int64_t i = 0; i < each; ++i) {
      const int64_t row = i / 2 * 4 + semi_position(meta, first + i);
      sum = static_cast<C>(sum + product<C>(values[first + i], other.data[row * k + column]));
    }
    out[at] = convert<T>(sum);
  });
}

}  // namespace

void sparse_semi_mm(const Tensor& values, const Tensor& meta, const Tensor& other, Tensor& out) {
  const Tensor factors = contiguous(values), words = contiguous(meta), dense = contiguous(other);
  with_product_element(out.dtype(), [&]<typename T>(std::type_identity<T>) {
    multiply_semi(queue_of(out), factors.data_as<T>(), values.size(1), words.data_as<int16_t>(), dense_of<T>(dense),
                  out.data_as<T>(), out.numel());
  });
}

namespace {

// The largest or smallest product of each element of the result, and its entry. As in PyTorch, NaN wins.
template <typename T>
void find_extremum(const Queue& queue, const RowEntries<T>& rows, bool largest, T* out, int64_t* argument, int64_t n) {
  using C = SumType<T>;
  const int64_t k = rows.other.k;
  for_each(queue, n, [=] TT_DEVICE(int64_t at) {
    const int64_t column = at % k;
    const EntryRow entries = rows.row(at / k);
    C best{};
    int64_t entry = -1;
    for (int64_t i = entries.begin; i < entries.end; ++i) {
      const C value = rows.term(entries, i, column);
      const bool better = largest ? value > best : value < best;
      if (entry >= 0 && !better && (!is_nan(value) || is_nan(best))) continue;
      best = value;
      entry = i;
    }
    out[at] = convert<T>(best);
    argument[at] = entry;
  });
}

}  // namespace

void sparse_csr_mm_extremum(const Tensor& crow, const Tensor& col, const Tensor& values, const Tensor& other,
                            bool largest, Tensor& output, Tensor& argument) {
  DeviceErrorCell* cell = open_index_cell(queue_of(output));
  const Csr csr = compressed_indices(crow, col, cell);
  const IndexRange columns = index_range(col, other.size(-2), cell);
  const Tensor factors = contiguous(values), dense = contiguous(other);
  with_product_element(output.dtype(), [&]<typename T>(std::type_identity<T>) {
    if constexpr (!is_complex_v<T>) {
      const RowEntries<T> rows{csr.view(), columns, factors.data_as<T>(), dense_of<T>(dense)};
      find_extremum(queue_of(output), rows, largest, output.data_as<T>(), argument.data_as<int64_t>(), output.numel());
    }
  });
  if (output.numel() == 0) checked_positions(col, columns.size, cell);  // no thread has read the indices
  throw_reported_if_empty(output, csr.compressed, cell);
}

}  // namespace tt::cuda
