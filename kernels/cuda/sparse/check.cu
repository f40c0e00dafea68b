// Checks of the invariants of sparse tensors, with PyTorch's messages.
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/iteration/fill.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/sparse/columns.h"

namespace tt::cuda {
namespace {

// The second value of a cell is the dimension of the invalid index, or kNotASet.
Error invalid_coo(const DeviceErrorCell& cell) {
  if (cell.values[1] == kNotASet) return uncoalesced_error();
  return coo_index_error(cell.values[0], cell.values[1], cell.values[2]);
}

struct OutsideDimension {
  const int64_t* index;
  int64_t dim, size;
  TT_DEVICE bool found(int64_t i) const { return index[i] < 0 || index[i] >= size; }
  TT_DEVICE void report(DeviceErrorCell* cell, int64_t i) const { report_error(cell, index[i], dim, size); }
};

}  // namespace

void sparse_check_coo(const Tensor& indices, const Tensor&, absl::Span<const int64_t> size, bool coalesced,
                      Tensor& out) {
  const Queue queue = queue_of(indices);
  DeviceErrorCell* cell = open_error_cell(queue, &invalid_coo);
  const Tensor wide = contiguous_as(indices, DType::kInt64);
  const int64_t dims = wide.size(0), n = wide.size(1);
  for (int64_t d = 0; d < dims; ++d) {
    report_first(queue, n, OutsideDimension{wide.data_as<int64_t>() + d * n, d, size[static_cast<size_t>(d)]}, cell);
  }
  fill_with(out, Scalar(true));
  if (!coalesced) return;
  const Columns columns(indices, size.first(static_cast<size_t>(dims)), cell);
  columns.report_unless_sorted(cell, kNotASet);
}

namespace {

// The rank of an error is the number of its matrix and invariant; the first value tells whether rows are compressed.
Error broken_invariant(const DeviceErrorCell& cell) {
  const auto broken = static_cast<CompressedInvariant>(error_rank(cell) % kCompressedInvariants);
  return compressed_invariant_error(broken, cell.values[1] != 0);
}

// Indices of a batch of compressed matrices.
struct CompressedIndices {
  const int64_t *starts, *plain;
  int64_t n, nnz, size;  // the numbers of compressed dimensions, entries and plain dimensions
  bool by_rows;
  DeviceErrorCell* cell;

  TT_DEVICE void require(bool valid, int64_t matrix, CompressedInvariant invariant) const {
    if (valid) return;
    report_ranked_error(cell, matrix * kCompressedInvariants + static_cast<int64_t>(invariant), by_rows, 0);
  }
  // Checks the compressed index i of all matrices.
  TT_DEVICE void check_start(int64_t i) const {
    const int64_t matrix = i / (n + 1), at = i % (n + 1), start = starts[i];
    if (at == 0) require(start == 0, matrix, CompressedInvariant::kFirst);
    if (at == n) {
      require(start == nnz, matrix, CompressedInvariant::kLast);
    } else {
      const int64_t end = starts[i + 1];
      require(start >= 0 && start <= end && end - start <= size, matrix, CompressedInvariant::kSteps);
    }
  }
  // Checks the plain index i of all matrices.
  TT_DEVICE void check_plain(int64_t i) const {
    const int64_t matrix = i / nnz, at = i % nnz, index = plain[i];
    require(index >= 0 && index < size, matrix, CompressedInvariant::kPlain);
    if (at == 0 || plain[i - 1] < index) return;
    const int64_t* start = starts + matrix * (n + 1);  // the entry must be the first of a row
    const int64_t row = insertion_point(start, n + 1, at, false);
    require(row <= n && start[row] == at, matrix, CompressedInvariant::kOrder);
  }
};

}  // namespace

void sparse_check_compressed(const Tensor& compressed, const Tensor& plain, int64_t compressed_size, int64_t plain_size,
                             bool by_rows, Tensor& out) {
  const Queue queue = queue_of(compressed);
  const Tensor starts = contiguous_as(compressed, DType::kInt64), index = contiguous_as(plain, DType::kInt64);
  const CompressedIndices indices{starts.data_as<int64_t>(),
                                  index.data_as<int64_t>(),
                                  compressed_size,
                                  plain.size(-1),
                                  plain_size,
                                  by_rows,
                                  open_error_cell(queue, &broken_invariant)};
  for_each(queue, starts.numel(), [=] TT_DEVICE(int64_t i) { indices.check_start(i); });
  for_each(queue, index.numel(), [=] TT_DEVICE(int64_t i) { indices.check_plain(i); });
  fill_with(out, Scalar(true));
}

}  // namespace tt::cuda
