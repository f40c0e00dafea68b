// sparse_coalesce and sparse_unique: the distinct columns of indices, and the sums of values at equal ones.
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/sparse/columns.h"

namespace tt::cuda {

void sparse_coalesce(const Tensor& indices, const Tensor& values, absl::Span<const int64_t> size, Tensor& out_indices,
                     Tensor& out_values, Tensor& inverse) {
  DeviceErrorCell* cell = open_index_cell(queue_of(indices));
  const Columns columns(indices, size, cell);
  check_values_of_columns(values, columns.count());
  inverse = empty({columns.count()}, DType::kInt64, indices.device());
  const Runs runs = runs_of(columns, inverse);
  throw_reported(cell);
  out_indices = distinct_columns(columns, runs);
  Sizes sizes = values.sizes();
  sizes[0] = runs.count;
  out_values = empty(sizes, values.dtype(), values.device());
  sum_runs(runs, contiguous(values), out_values);
}

void sparse_unique(const Tensor& indices, absl::Span<const int64_t> size, Tensor& out_indices, Tensor& inverse) {
  DeviceErrorCell* cell = open_index_cell(queue_of(indices));
  const Columns columns(indices, size, cell);
  inverse = empty({columns.count()}, DType::kInt64, indices.device());
  const Runs runs = runs_of(columns, inverse);
  throw_reported(cell);
  out_indices = distinct_columns(columns, runs);
}

}  // namespace tt::cuda
