// Checks of the invariants of sparse tensors, with PyTorch's messages.
#include <algorithm>
#include <string_view>

#include "engine/schema/error.h"
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
      check(index >= 0, "found negative index ", index, " for dim ", d);
      check(index < size[d], "size is inconsistent with indices: for dim ", d, ", size is ", size[d],
            " but found index ", index);
    }
  }
  *out.data_as<uint8_t>() = 1;
  if (!coalesced) return;
  check(Columns(indices, size.first(static_cast<size_t>(dims))).is_sorted_and_distinct(),
        "cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor");
}

namespace {

// The names of a layout's indices in messages.
struct Names {
  std::string_view compressed, plain, compressed_dim, plain_dim;
};

constexpr Names kRows = {"crow_indices", "col_indices", "nrows", "ncols"};
constexpr Names kColumns = {"ccol_indices", "row_indices", "ncols", "nrows"};

void check_matrix(const int64_t* start, int64_t n, const int64_t* index, int64_t nnz, int64_t size,
                  const Names& names) {
  check(start[0] == 0, "`", names.compressed, "[..., 0] == 0` is not satisfied.");
  check(start[n] == nnz, "`", names.compressed, "[..., -1] == nnz` is not satisfied.");
  for (int64_t i = 0; i < n; ++i) {
    const bool valid = start[i] <= start[i + 1] && start[i] >= 0 && start[i + 1] - start[i] <= size;
    check(valid, "`0 <= ", names.compressed, "[..., 1:] - ", names.compressed, "[..., :-1] <= ", names.plain_dim,
          "` is not satisfied.");
  }
  for (int64_t i = 0; i < nnz; ++i) {
    check(index[i] >= 0 && index[i] < size, "`0 <= ", names.plain, " < ", names.plain_dim, "` is not satisfied.");
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t p = start[i] + 1; p < start[i + 1] && p < nnz; ++p) {
      check(index[p - 1] < index[p], "`", names.plain, "[..., ", names.compressed, "[..., i - 1]:", names.compressed,
            "[..., i]] for all i = 1, ..., ", names.compressed_dim,
            " are sorted and distinct along the last dimension values` is not satisfied.");
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
                 index.data_as<int64_t>() + b * nnz, nnz, plain_size, by_rows ? kRows : kColumns);
  }
  *out.data_as<uint8_t>() = 1;
}

}  // namespace tt::cpu
