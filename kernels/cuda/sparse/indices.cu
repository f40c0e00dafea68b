#include "kernels/cuda/sparse/indices.h"

#include <atomic>
#include <bit>

#include "kernels/cuda/index/selection.h"
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/launch/radix_sort.h"
#include "kernels/cuda/sort/sorted_rows.h"

namespace tt::cuda {
namespace {

Error index_error(const DeviceErrorCell& cell) {
  switch (cell.values[1]) {
    case kInvalidCompressed: return sparse_compressed_error(cell.values[0]);
    case kNotASet: return sparse_set_error();
    case kEqualRows: return sparse_rows_error();
    default: return sparse_index_error(cell.values[0], cell.values[1], cell.values[2]);
  }
}

}  // namespace

DeviceErrorCell* open_index_cell(const Queue& queue) { return open_error_cell(queue, &index_error); }

void throw_reported(const DeviceErrorCell* cell) {
  if (std::atomic_ref<const uint32_t>(cell->raised).load(std::memory_order_acquire) != 0) throw index_error(*cell);
}

void throw_reported_if_empty(const Tensor& out, const Tensor& checked, const DeviceErrorCell* cell) {
  if (out.numel() > 0 || checked.numel() == 0 || Context::current().capturing()) return;
  value_of(view_of(checked, Geometry{{}, {}, checked->offset}));
  throw_reported(cell);
}

IndexRange index_range(const Tensor& indices, int64_t size, DeviceErrorCell* cell) {
  check_empty_dimension(indices, size);
  return {size, kNoDimension, cell};
}

Tensor checked_positions(const Tensor& index, int64_t size, DeviceErrorCell* cell) {
  const IndexRange range = index_range(index, size, cell);
  const Tensor wide = contiguous_as(index, DType::kInt64);
  Tensor copied = empty(index.sizes(), DType::kInt64, index.device());
  const int64_t* from = wide.data_as<int64_t>();
  int64_t* to = copied.data_as<int64_t>();
  for_each(queue_of(index), copied.numel(), [=] TT_DEVICE(int64_t i) { to[i] = range.checked(from[i]); });
  return copied;
}

Tensor checked_compressed(const Tensor& crow, int64_t nnz, DeviceErrorCell* cell) {
  if (crow.size(-1) == 1 && crow.numel() > 0 && nnz > 0) throw sparse_compressed_error(nnz);
  Tensor copied = empty(crow.sizes(), DType::kInt64, crow.device());
  copy(crow, copied);
  const Queue queue = queue_of(crow);
  const Tensor flag = empty({1}, DType::kInt64, crow.device());
  int64_t *invalid = flag.data_as<int64_t>(), *to = copied.data_as<int64_t>();
  queue.fill(invalid, 0, sizeof(int64_t));
  const int64_t each = crow.size(-1);
  for_each(queue, copied.numel(), [=] TT_DEVICE(int64_t i) {
    const bool first = i % each == 0, last = (i + 1) % each == 0;
    if ((!first || to[i] == 0) && (!last || to[i] == nnz) && (first || to[i - 1] <= to[i])) return;
    report_error(cell, nnz, kInvalidCompressed, 0);
    *invalid = 1;  // every writer stores the same value
  });
  // Otherwise the rows could have far more entries than the matrix.
  for_each(queue, copied.numel(), [=] TT_DEVICE(int64_t i) {
    if (*invalid != 0) to[i] = 0;
  });
  return copied;
}

Tensor checked_offsets(const Tensor& indices, SizesView size, DeviceErrorCell* cell) {
  const int64_t n = indices.size(1);
  const Tensor wide = contiguous_as(indices, DType::kInt64);
  Tensor offsets = empty({n}, DType::kInt64, indices.device());
  const Queue queue = queue_of(indices);
  int64_t* to = offsets.data_as<int64_t>();
  if (n > 0) queue.fill(to, 0, static_cast<size_t>(n) * sizeof(int64_t));
  const bool fits = product_or_overflow(size) >= 0;
  uint64_t step = fits ? 1 : 0;
  for (int64_t d = indices.size(0); d-- > 0;) {
    const IndexRange range{size[static_cast<size_t>(d)], d, cell};
    if (n > 0 && range.size == 0) {  // an error at once: nobody may read a result without elements
      throw sparse_index_error(value_of(view_of(wide, Geometry{{}, {}, wide->offset + d * n})), d, 0);
    }
    const int64_t* index = wide.data_as<int64_t>() + d * n;
    for_each(queue, n, [=] TT_DEVICE(int64_t i) {
      to[i] += static_cast<int64_t>(static_cast<uint64_t>(range.checked(index[i])) * step);
    });
    step *= static_cast<uint64_t>(size[static_cast<size_t>(d)]);
  }
  return offsets;
}

Csr compressed_indices(const Tensor& crow, const Tensor& col, DeviceErrorCell* cell) {
  Csr csr;
  csr.rows = crow.size(-1) - 1;
  csr.nnz = col.size(-1);
  csr.batch = crow.numel() / crow.size(-1);
  csr.compressed = checked_compressed(crow, csr.nnz, cell);
  csr.plain = contiguous_as(col, DType::kInt64);
  return csr;
}

Csr checked_csr(const Tensor& crow, const Tensor& col, int64_t columns, DeviceErrorCell* cell) {
  Csr csr = compressed_indices(crow, col, cell);
  csr.plain = checked_positions(col, columns, cell);
  return csr;
}

SortedByColumn sorted_by_column(const Csr& csr, int64_t columns) {
  const Queue queue = queue_of(csr.compressed);
  const Device device = queue.device();
  const int64_t entries = csr.entries(), nnz = csr.nnz;
  const CsrView matrices = csr.view();
  Tensor keys = empty({entries}, DType::kInt64, device);
  int64_t* key = keys.data_as<int64_t>();
  for_each(queue, entries, [=] TT_DEVICE(int64_t i) { key[i] = i / nnz * columns + matrices.col[i]; });
  const KeyIndexPairs sorted = radix_sort(queue, {keys, iota(queue, entries)}, bits_below(csr.batch * columns));

  SortedByColumn result{empty({csr.batch, columns + 1}, DType::kInt64, device), sorted.indices,
                        empty({entries}, DType::kInt64, device)};
  const int64_t *column = sorted.keys.data_as<int64_t>(), *order = sorted.indices.data_as<int64_t>();
  int64_t *start = result.starts.data_as<int64_t>(), *row = result.rows.data_as<int64_t>();
  for_each(queue, result.starts.numel(), [=] TT_DEVICE(int64_t i) {
    const int64_t matrix = i / (columns + 1), c = i % (columns + 1);
    start[i] = insertion_point(column + matrix * nnz, nnz, matrix * columns + c, false);
  });
  for_each(queue, entries, [=] TT_DEVICE(int64_t i) { row[i] = matrices.row_of(order[i]); });
  return result;
}

int bits_below(int64_t limit) { return limit > 1 ? std::bit_width(static_cast<uint64_t>(limit - 1)) : 0; }

int64_t part_width(const Tensor& parts) { return product_or_overflow(SizesView(parts.sizes()).subspan(1)); }

}  // namespace tt::cuda
