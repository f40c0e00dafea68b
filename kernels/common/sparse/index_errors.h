// Errors and argument checks of operators on components of sparse tensors. Each backend finds invalid indices in its
// own way.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/schema/error.h"
#include "engine/tensor/tensor.h"

namespace tt {

// Throws Error (RuntimeError) unless all tensors are of int32 or all of int64.
inline void check_index_dtypes(std::initializer_list<const Tensor*> indices) {
  const DType first = (*indices.begin())->dtype();
  for (const Tensor* t : indices) {
    check(t->dtype() == DType::kInt32 || t->dtype() == DType::kInt64, "expected indices of int32 or int64, got ",
          name(t->dtype()));
    check(t->dtype() == first, "expected indices of one dtype, got ", name(first), " and ", name(t->dtype()));
  }
}

// Throws Error (RuntimeError) unless `indices`, (sparse dimensions, entries), have a dimension per size.
inline void check_columns(const Tensor& indices, SizesView size) {
  check_index_dtypes({&indices});
  check(indices.dim() == 2 && indices.size(0) == static_cast<int64_t>(size.size()), "expected indices of sizes (",
        size.size(), ", entries), got ", to_string(indices.sizes()));
  for (int64_t n : size) check(n >= 0, "expected sizes of 0 or more, got ", n);
}

// The product of sizes, or -1 if it does not fit into 63 bits.
inline int64_t product_or_overflow(SizesView size) {
  int64_t product = 1;
  for (int64_t n : size) {
    if (__builtin_mul_overflow(product, n, &product)) return -1;
  }
  return product;
}

// Throws Error (RuntimeError) if there are indices but the dimension that they index is empty.
inline void check_empty_dimension(const Tensor& indices, int64_t size) {
  check(size > 0 || indices.numel() == 0, "expected no index for an empty dimension, got ", indices.numel());
}

// Throws Error (RuntimeError) unless `sparse_dim` is a number of leading dimensions of `input`.
inline void check_sparse_dim(const Tensor& input, int64_t sparse_dim) {
  check(sparse_dim >= 0 && sparse_dim <= input.dim(), "expected sparse_dim between 0 and ", input.dim(), ", got ",
        sparse_dim);
}

// Throws Error (RuntimeError) unless the components are those of one CSR matrix.
inline void check_csr_components(const Tensor& crow, const Tensor& col, const Tensor& values) {
  check(crow.dim() == 1 && crow.size(0) > 0 && col.dim() == 1, "expected compressed indices and plain indices of one ",
        "matrix, got sizes ", to_string(crow.sizes()), " and ", to_string(col.sizes()));
  check(values.sizes() == col.sizes(), "expected one value per index, got values of sizes ", to_string(values.sizes()),
        " for indices of sizes ", to_string(col.sizes()));
}

// Throws Error (RuntimeError) unless there is one of `values` per column of indices.
inline void check_values_of_columns(const Tensor& values, int64_t columns) {
  check(values.dim() > 0 && values.size(0) == columns, "expected one value per index, got values of sizes ",
        to_string(values.sizes()), " for ", columns, " indices");
}

inline Error sparse_error(std::string message) { return Error(ErrorKind::kRuntime, std::move(message)); }

// `dim` is negative if the index is not one of a tensor's dimension.
inline Error sparse_index_error(int64_t index, int64_t dim, int64_t size) {
  const std::string place = dim < 0 ? "a dimension" : absl::StrCat("dimension ", dim);
  return sparse_error(absl::StrCat("index ", index, " is out of range for ", place, " of size ", size));
}

inline Error sparse_compressed_error(int64_t nnz) {
  return sparse_error(absl::StrCat(
      "expected compressed indices that start with 0, do not decrease and end with the number of entries ", nnz));
}

// The index after `previous` is smaller.
inline Error sparse_order_error(int64_t index, int64_t previous) {
  return sparse_error(absl::StrCat("expected sorted indices, got ", index, " after ", previous));
}

inline Error sparse_set_error() { return sparse_error("expected sorted and distinct indices"); }
inline Error sparse_rows_error() { return sparse_error("expected distinct rows"); }

// The errors of sparse_check_coo, with PyTorch's messages.
inline Error coo_index_error(int64_t index, int64_t dim, int64_t size) {
  return sparse_error(index < 0 ? absl::StrCat("found negative index ", index, " for dim ", dim)
                                : absl::StrCat("size is inconsistent with indices: for dim ", dim, ", size is ", size,
                                               " but found index ", index));
}
inline Error uncoalesced_error() {
  return sparse_error("cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor");
}

// The invariants of a compressed layout, in the order in which sparse_check_compressed checks those of a matrix.
enum class CompressedInvariant { kFirst, kLast, kSteps, kPlain, kOrder };
inline constexpr int64_t kCompressedInvariants = 5;

// The error of sparse_check_compressed, with PyTorch's message.
inline Error compressed_invariant_error(CompressedInvariant broken, bool by_rows) {
  const std::string compressed = by_rows ? "crow_indices" : "ccol_indices",
                    plain = by_rows ? "col_indices" : "row_indices";
  const std::string plain_dim = by_rows ? "ncols" : "nrows", compressed_dim = by_rows ? "nrows" : "ncols";
  std::string invariant;
  switch (broken) {
    case CompressedInvariant::kFirst: invariant = compressed + "[..., 0] == 0`"; break;
    case CompressedInvariant::kLast: invariant = compressed + "[..., -1] == nnz`"; break;
    case CompressedInvariant::kSteps:
      invariant = absl::StrCat("0 <= ", compressed, "[..., 1:] - ", compressed, "[..., :-1] <= ", plain_dim, "`");
      break;
    case CompressedInvariant::kPlain: invariant = absl::StrCat("0 <= ", plain, " < ", plain_dim, "`"); break;
    case CompressedInvariant::kOrder:
      invariant =
          absl::StrCat(plain, "[..., ", compressed, "[..., i - 1]:", compressed, "[..., i]] for all i = 1, ..., ",
                       compressed_dim, " are sorted and distinct along the last dimension values`");
      break;
  }
  return sparse_error(absl::StrCat("`", invariant, " is not satisfied."));
}

}  // namespace tt
