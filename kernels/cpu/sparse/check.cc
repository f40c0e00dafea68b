// Checks of the invariants of sparse tensors, with PyTorch's messages.
#include <algorithm>

#include "kernels/common/sparse/index_errors.h"
#include "kernels/cpu/iteration/contiguous.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/sparse/columns.h"

namespace tt::cpu {

void sparse_check_coo(const Tensor& indices, const Tensor&, absl::Span<const int64_t> size, bool coalesced,
                      Tensor& out) {
  const Tensor wide = contiguous_as(indices, DType::kInt64);
  const int64_t dims = wide.size(0), n = wide.size(1);
  for (int64_t d = 0; d < dims; ++d) {
    for (int64_t i = d * n; i < (d + 1) * n; ++i) {
      const int64_t index = wide.data_as<int64_t>()[i];
      if (index < 0 || index >= size[d]) throw coo_index_error(index, d, size[d]);
    }
  }
  *out.data_as<uint8_t>() = 1;
  if (!coalesced) return;
  if (!Columns(indices, size.first(static_cast<size_t>(dims))).is_sorted_and_distinct()) throw uncoalesced_error();
}

namespace {

void check_matrix(const int64_t* start, int64_t n, const int64_t* index, int64_t nnz, int64_t size, bool by_rows) {
  const auto require = [by_rows](bool valid, CompressedInvariant invariant) {
    if (!valid) throw compressed_invariant_error(invariant, by_rows);
  };
  require(start[0] == 0, CompressedInvariant::kFirst);
  require(start[n] == nnz, CompressedInvariant::kLast);
  for (int64_t i = 0; i < n; ++i) {
    require(start[i] <= start[i + 1] && start[i] >= 0 && start[i + 1] - start[i] <= size, CompressedInvariant::kSteps);
  }
  for (int64_t i = 0; i < nnz; ++i) require(index[i] >= 0 && index[i] < size, CompressedInvariant::kPlain);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t p = start[i] + 1; p < start[i + 1] && p < nnz; ++p) {
      require(index[p - 1] < index[p], CompressedInvariant::kOrder);
    }
  }
}

}  // namespace

void sparse_check_compressed(const Tensor& compressed, const Tensor& plain, int64_t compressed_size, int64_t plain_size,
                             bool by_rows, Tensor& out) {
  // Copies, so that the bounds of the loops do not change.
  Tensor starts = empty(compressed.sizes(), DType::kInt64, compressed.device());
  const Tensor from = contiguous_as(compressed, DType::kInt64), index = contiguous_as(plain, DType::kInt64);
  std::copy_n(from.data_as<int64_t>(), from.numel(), starts.data_as<int64_t>());
  const int64_t nnz = plain.size(-1), batch = compressed.numel() / (compressed_size + 1);
  for (int64_t b = 0; b < batch; ++b) {
    check_matrix(starts.data_as<int64_t>() + b * (compressed_size + 1), compressed_size,
                 index.data_as<int64_t>() + b * nnz, nnz, plain_size, by_rows);
  }
  *out.data_as<uint8_t>() = 1;
}

}  // namespace tt::cpu
