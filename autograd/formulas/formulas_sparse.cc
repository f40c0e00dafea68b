#include "autograd/formulas/formulas_sparse.h"

#include <algorithm>

#include "engine/dispatch/ops.h"

namespace tt::autograd::formulas {
namespace {

SizesView leading(SizesView sizes, int64_t count) { return sizes.first(static_cast<size_t>(count)); }

// A CSR matrix without batch dimensions.
struct Csr {
  Tensor crow, col, values;
};

// The transpose of a matrix with `columns` columns.
Csr transposed(const Tensor& crow, const Tensor& col, const Tensor& values, int64_t columns) {
  const Tensors t = ops::sparse_transpose(crow, col, columns);
  return {t[0], t[1], ops::index_select(values, 0, t[2])};
}

int64_t rows_of(const Tensor& crow) { return crow.size(0) - 1; }

}  // namespace

Tensor sparse_gather_grad(const Tensor& g, const Tensor& indices, SizesView sizes) {
  return ops::sparse_scatter(indices, g, leading(sizes, indices.size(0)));
}

Tensors sparse_extremum_grad(const Tensor& g, const Tensor& col, const Tensor& values, const Tensor& other,
                             const Tensor& argument) {
  if (values.numel() == 0) return {ops::zeros_like(values), ops::zeros_like(other)};
  const Tensor entry = ops::clamp(argument, int64_t{0});
  const Tensor flat = ops::reshape(entry, {-1});
  const Tensor row = ops::reshape(ops::index_select(ops::to_dtype(col, DType::kInt64), 0, flat), entry.sizes());
  const Tensor kept = ops::masked_fill(g, ops::lt(argument, int64_t{0}), 0.0);
  const Tensor of_values = ops::reshape(ops::mul(kept, ops::gather(other, 0, row)), {-1});
  const Tensor factor = ops::reshape(ops::index_select(values, 0, flat), entry.sizes());
  return {ops::index_add(ops::zeros_like(values), 0, flat, of_values),
          ops::scatter_add(ops::zeros_like(other), 0, row, ops::mul(kept, factor))};
}

Tensors sparse_bsr_mm_grad(const Tensor& g, const Tensor& crow, const Tensor& col, const Tensor& values,
                           const Tensor& other) {
  const int64_t nnz = col.size(-1), batch = col.numel() / std::max<int64_t>(nnz, 1), k = other.size(-1);
  const int64_t p = values.size(-2), q = values.size(-1);
  if (nnz == 0 || batch == 0) return {ops::zeros_like(values), ops::zeros_like(other)};
  const int64_t rows = crow.size(-1) - 1, columns = other.size(-2) / q;
  // Positions of blocks among those of all matrices of the batch.
  const Tensor first = ops::unsqueeze(ops::arange(batch, DType::kInt64, col.device()), 1);
  const Tensor row = ops::add(ops::reshape(ops::to_dtype(ops::sparse_expand(crow, nnz), DType::kInt64), {batch, nnz}),
                              ops::mul(first, rows));
  const Tensor column =
      ops::add(ops::reshape(ops::to_dtype(col, DType::kInt64), {batch, nnz}), ops::mul(first, columns));
  const Tensor to = ops::reshape(column, {-1});
  const Tensor blocks = ops::index_select(ops::reshape(g, {batch * rows, p, k}), 0, ops::reshape(row, {-1}));
  const Tensor parts = ops::index_select(ops::reshape(other, {batch * columns, q, k}), 0, to);
  const Tensor of_values = ops::reshape(ops::bmm(blocks, ops::transpose(parts, 1, 2)), values.sizes());
  const Tensor products = ops::bmm(ops::transpose(ops::reshape(values, {batch * nnz, p, q}), 1, 2), blocks);
  const Tensor zeros = ops::zeros_like(ops::reshape(other, {batch * columns, q, k}));
  return {of_values, ops::reshape(ops::index_add(zeros, 0, to, products), other.sizes())};
}

Tensor sparse_matmul_grad(const Tensor& g, const Tensor& crow, const Tensor& col, const Tensor& crow1,
                          const Tensor& col1, const Tensor& values1, const Tensor& crow2, const Tensor& col2,
                          int64_t columns) {
  const Csr a = transposed(crow1, col1, values1, rows_of(crow2)), c = transposed(crow, col, g, columns);
  return ops::sparse_csr_sampled_matmul(a.crow, a.col, a.values, c.crow, c.col, c.values, crow2, col2, rows_of(crow1));
}

Tensor sparse_sampled_grad_first(const Tensor& g, const Tensor& crow1, const Tensor& col1, const Tensor& crow2,
                                 const Tensor& col2, const Tensor& values2, const Tensor& crow, const Tensor& col,
                                 int64_t columns) {
  const Csr y = transposed(crow2, col2, values2, columns);
  return ops::sparse_csr_sampled_matmul(crow, col, g, y.crow, y.col, y.values, crow1, col1, rows_of(crow2));
}

Tensor sparse_sampled_grad_second(const Tensor& g, const Tensor& crow1, const Tensor& col1, const Tensor& values1,
                                  const Tensor& crow2, const Tensor& col2, const Tensor& crow, const Tensor& col,
                                  int64_t columns) {
  const Csr p = transposed(crow, col, g, rows_of(crow2)), x = transposed(crow1, col1, values1, columns);
  return ops::sparse_csr_sampled_matmul(p.crow, p.col, p.values, x.crow, x.col, x.values, crow2, col2, rows_of(crow1));
}

Tensors sparse_solve_grad(const Tensor& g, const Tensor& crow, const Tensor& col, const Tensor& values,
                          const Tensor& result, bool upper, bool transpose, bool unitriangular) {
  const Tensor of_other = ops::sparse_csr_triangular_solve(crow, col, values, g, upper, !transpose, unitriangular);
  const Tensor products = transpose ? ops::sparse_csr_sddmm(crow, col, result, of_other)
                                    : ops::sparse_csr_sddmm(crow, col, of_other, result);
  const Tensor row = ops::sparse_expand(crow, col.size(0));
  const Tensor outside = upper ? (unitriangular ? ops::le(col, row) : ops::lt(col, row))
                               : (unitriangular ? ops::ge(col, row) : ops::gt(col, row));
  return {ops::masked_fill(ops::neg(products), outside, 0.0), of_other};
}

Tensor sparse_softmax_grad(const Tensor& g, const Tensor& result, const Tensor& group, int64_t groups, bool log) {
  const Tensor to = ops::to_dtype(group, DType::kInt64);
  const Tensor p = log ? ops::exp(result) : result;
  const Tensor terms = log ? g : ops::mul(g, p);
  Sizes sizes = terms.sizes();
  sizes[0] = groups;
  const Tensor zeros = ops::zeros(sizes, terms.dtype(), terms.device());
  const Tensor sums = ops::index_select(ops::index_add(zeros, 0, to, terms), 0, to);
  return log ? ops::sub(g, ops::mul(p, sums)) : ops::sub(terms, ops::mul(p, sums));
}

}  // namespace tt::autograd::formulas
