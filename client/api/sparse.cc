#include "client/api/sparse.h"

#include <algorithm>
#include <string>

#include "client/api/dispatch.h"
#include "client/api/errors.h"
#include "client/api/functions.h"
#include "engine/schema/op_ids.h"

namespace teletensor::sparse {
namespace {

using internal::call;
using internal::call_tuple;
namespace op_id = tt::op_id;

tt::Arg arg(const Tensor& tensor) { return tt::Arg(tensor.handle().get()); }

void require_matrix(const char* function, const Tensor& tensor, int64_t rows) {
  if (tensor.dim() == 2 && tensor.size(0) == rows) return;
  std::string sizes;
  for (const int64_t size : tensor.sizes()) sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
  throw RuntimeError(std::string("[sparse::") + function + "] expected a matrix of " + std::to_string(rows) +
                     " rows, got sizes [" + sizes + "]");
}

// Its rows are those of its sizes. The engine checks the other parts.
void require_rows(const char* function, const Csr& a) {
  if (a.crow_indices.dim() == 1 && a.crow_indices.size(0) - 1 == a.sizes[0]) return;
  throw RuntimeError(std::string("[sparse::") + function +
                     "] expected a vector of crow_indices with one element more than the " +
                     std::to_string(a.sizes[0]) + " rows");
}

// The sizes that the rows of the indices address; the others are those of the values' elements.
tt::Sizes sparse_sizes(const Coo& tensor) {
  const int64_t dims = tensor.indices.dim() == 2 ? tensor.indices.size(0) : -1;
  if (dims < 0 || dims > static_cast<int64_t>(tensor.sizes.size())) {
    throw RuntimeError("[sparse::Coo] expected indices [dimensions, elements] of at most " +
                       std::to_string(tensor.sizes.size()) + " dimensions");
  }
  const auto parts = tensor.values.sizes();
  if (parts.empty() || !std::equal(parts.begin() + 1, parts.end(), tensor.sizes.begin() + dims, tensor.sizes.end())) {
    throw RuntimeError("[sparse::Coo] expected values [elements, dense sizes...] of the tensor's last " +
                       std::to_string(static_cast<int64_t>(tensor.sizes.size()) - dims) + " dimensions");
  }
  return tt::Sizes(tensor.sizes.begin(), tensor.sizes.begin() + dims);
}

}  // namespace

Coo Coo::coalesce() const {
  const tt::Sizes addressed = sparse_sizes(*this);
  const auto [columns, sums, inverse] =
      call_tuple<3>(op_id::kSparseCoalesce, {arg(indices), arg(values), tt::Arg(tt::SizesView(addressed))});
  return {columns, sums, sizes};
}

Tensor Coo::to_dense() const {
  const tt::Sizes addressed = sparse_sizes(*this);
  return call(op_id::kSparseScatter, {arg(indices), arg(values), tt::Arg(tt::SizesView(addressed))});
}

Coo Csr::to_coo() const {
  require_rows("Csr", *this);
  const Tensor rows = call(op_id::kSparseExpand, {arg(crow_indices), tt::Arg(col_indices.size(0))});
  return {stack({rows, col_indices}), values, {sizes[0], sizes[1]}};
}

Tensor Csr::to_dense() const { return to_coo().to_dense(); }

Coo to_coo(const Tensor& dense) {
  const Tensor indices = call(op_id::kSparseNonzero, {arg(dense), tt::Arg(dense.dim())});
  return {
      indices, call(op_id::kSparseGather, {arg(dense), arg(indices)}), {dense.sizes().begin(), dense.sizes().end()}};
}

static Csr compressed(const Coo& sorted) {
  const Tensor crow = call(op_id::kSparseCompress, {arg(sorted.indices.select(0, 0)), tt::Arg(sorted.sizes[0])});
  return {crow, sorted.indices.select(0, 1), sorted.values, {sorted.sizes[0], sorted.sizes[1]}};
}

Csr to_csr(const Tensor& dense) {
  if (dense.dim() != 2) {
    throw RuntimeError("[sparse::to_csr] expected a matrix, got " + std::to_string(dense.dim()) + " dimensions");
  }
  return compressed(to_coo(dense));
}

Csr to_csr(const Coo& matrix) {
  if (matrix.sizes.size() != 2 || sparse_sizes(matrix).size() != 2) {
    throw RuntimeError("[sparse::to_csr] expected two sparse and no dense dimensions, got " +
                       std::to_string(matrix.sizes.size()) + " dimensions");
  }
  return compressed(matrix.coalesce());
}

Tensor mm(const Csr& a, const Tensor& b) {
  require_rows("mm", a);
  require_matrix("mm", b, a.sizes[1]);
  return call(op_id::kSparseCsrMm, {arg(a.crow_indices), arg(a.col_indices), arg(a.values), arg(b)});
}

Tensor mv(const Csr& a, const Tensor& b) { return mm(a, b.unsqueeze(-1)).squeeze(-1); }

Tensor mm_transposed(const Csr& a, const Tensor& b) {
  require_rows("mm_transposed", a);
  require_matrix("mm_transposed", b, a.sizes[0]);
  return call(op_id::kSparseCsrMmTransposed,
              {arg(a.crow_indices), arg(a.col_indices), arg(a.values), arg(b), tt::Arg(a.sizes[1])});
}

Csr mm(const Csr& a, const Csr& b) {
  require_rows("mm", a);
  require_rows("mm", b);
  if (a.sizes[1] != b.sizes[0]) {
    throw RuntimeError("[sparse::mm] expected as many rows as the first matrix has columns (" +
                       std::to_string(a.sizes[1]) + "), got " + std::to_string(b.sizes[0]));
  }
  const auto [crow, col, values] = call_tuple<3>(
      op_id::kSparseCsrMatmul, {arg(a.crow_indices), arg(a.col_indices), arg(a.values), arg(b.crow_indices),
                                arg(b.col_indices), arg(b.values), tt::Arg(b.sizes[1])});
  return {crow, col, values, {a.sizes[0], b.sizes[1]}};
}

Csr sampled_mm(const Csr& pattern, const Tensor& a, const Tensor& b) {
  require_rows("sampled_mm", pattern);
  require_matrix("sampled_mm", a, pattern.sizes[0]);
  if (b.dim() != 2 || b.size(1) != pattern.sizes[1]) {
    throw RuntimeError("[sparse::sampled_mm] expected a second matrix of " + std::to_string(pattern.sizes[1]) +
                       " columns");
  }
  const Tensor values =
      call(op_id::kSparseCsrSddmm, {arg(pattern.crow_indices), arg(pattern.col_indices), arg(a), arg(b.t())});
  return {pattern.crow_indices, pattern.col_indices, values, pattern.sizes};
}

}  // namespace teletensor::sparse
