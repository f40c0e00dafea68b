// Compressed indices from sorted ones and back, and the sort of a CSR matrix's entries by column.
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/sparse/indices.h"

namespace tt::cuda {
namespace {

// The values of a cell: an index, its predecessor in the row, and the size.
Error invalid_sorted_index(const DeviceErrorCell& cell) {
  const int64_t index = cell.values[0], size = cell.values[2];
  if (index < 0 || index >= size) return sparse_index_error(index, -1, size);
  return sparse_order_error(index, cell.values[1]);
}

// Finds indices that are out of range or smaller than their predecessor, in rows of n.
struct NotSorted {
  const int64_t* index;
  int64_t n, size;
  TT_DEVICE int64_t previous(int64_t i) const { return i % n > 0 ? index[i - 1] : 0; }
  TT_DEVICE bool found(int64_t i) const { return index[i] < 0 || index[i] >= size || index[i] < previous(i); }
  TT_DEVICE void report(DeviceErrorCell* cell, int64_t i) const { report_error(cell, index[i], previous(i), size); }
};

template <typename T>
void write_starts(const Tensor& index, int64_t size, Tensor& out) {
  const int64_t n = index.size(-1);
  const int64_t* from = index.data_as<int64_t>();
  T* to = out.data_as<T>();
  for_each(queue_of(out), out.numel(), [=] TT_DEVICE(int64_t i) {
    to[i] = static_cast<T>(insertion_point(from + i / (size + 1) * n, n, i % (size + 1), false));
  });
}

template <typename T>
void write_rows(const Tensor& crow, int64_t nnz, Tensor& out) {
  const CsrView matrices{crow.data_as<int64_t>(), nullptr, crow.size(-1) - 1, nnz};
  T* to = out.data_as<T>();
  for_each(queue_of(out), out.numel(), [=] TT_DEVICE(int64_t i) { to[i] = static_cast<T>(matrices.row_of(i)); });
}

}  // namespace

void sparse_compress(const Tensor& index, int64_t size, Tensor& out) {
  check_empty_dimension(index, size);
  const Queue queue = queue_of(index);
  const Tensor from = contiguous_as(index, DType::kInt64);
  report_first(queue, from.numel(), NotSorted{from.data_as<int64_t>(), from.size(-1), size},
               open_error_cell(queue, &invalid_sorted_index));
  with_index(out.dtype(), [&]<typename T>(std::type_identity<T>) { write_starts<T>(from, size, out); });
}

void sparse_expand(const Tensor& compressed, int64_t nnz, Tensor& out) {
  DeviceErrorCell* cell = open_index_cell(queue_of(compressed));
  const Tensor crow = checked_compressed(compressed, nnz, cell);
  with_index(out.dtype(), [&]<typename T>(std::type_identity<T>) { write_rows<T>(crow, nnz, out); });
  throw_reported_if_empty(out, crow, cell);
}

void sparse_transpose(const Tensor& crow, const Tensor& col, int64_t size, Tensor& compressed, Tensor& plain,
                      Tensor& permutation) {
  const Csr csr = checked_csr(crow, col, size, open_index_cell(queue_of(crow)));
  const SortedByColumn sorted = sorted_by_column(csr, size);
  copy(sorted.starts,
       view_of(compressed, Geometry{sorted.starts.sizes(), sorted.starts.strides(), compressed->offset}));
  copy(sorted.rows, view_of(plain, Geometry{sorted.rows.sizes(), sorted.rows.strides(), plain->offset}));
  copy(sorted.order, view_of(permutation, Geometry{sorted.order.sizes(), sorted.order.strides(), permutation->offset}));
}

}  // namespace tt::cuda
