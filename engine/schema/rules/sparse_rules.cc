// Rules of the operators on components of sparse tensors: indices and values of COO, CSR and BSR tensors, and the
// values and metadata of 2:4 matrices.
#include <algorithm>

#include "engine/schema/checked_math.h"
#include "engine/schema/error.h"
#include "engine/schema/rules/dtype_rules.h"
#include "engine/schema/rules/shape_rules.h"

namespace tt {

namespace dtype_rules {

DType sparse_index_all(std::initializer_list<const Arg*> args) {
  const DType first = same(**args.begin());
  for (const Arg* arg : args) {
    const DType t = same(*arg);
    check(t == DType::kInt32 || t == DType::kInt64, "expected indices of int32 or int64, got ", name(t));
    check(t == first, "expected indices of one dtype, got ", name(first), " and ", name(t));
  }
  return first;
}

DType sparse_real(const Arg& values, const Arg& other) {
  const DType t = product(values, other);
  require_real(t);
  return t;
}

}  // namespace dtype_rules

namespace shape_rules {
namespace {

using dtype_rules::sparse_index;

const Sizes& sizes_of(const Arg& a) { return a.tensor->sizes; }

void check_size(SymInt size) { check(size >= 0, "expected a size of 0 or more, got ", size); }

// The number of leading dimensions of compressed indices, after checks of their sizes.
size_t batch_dims(const Arg& crow, const Arg& col) {
  sparse_index(crow, col);
  const Sizes &r = sizes_of(crow), &c = sizes_of(col);
  check(!r.empty() && r.size() == c.size() && std::equal(r.begin(), r.end() - 1, c.begin()) && r.back() > 0,
        "expected compressed indices and plain indices of one batch, got sizes ", r, " and ", c);
  return r.size() - 1;
}

// The same, of matrices whose values have `dense` further dimensions.
size_t batch_dims(const Arg& crow, const Arg& col, const Arg& values, size_t dense) {
  const size_t batch = batch_dims(crow, col);
  const Sizes &c = sizes_of(col), &v = sizes_of(values);
  check(v.size() == c.size() + dense && std::equal(c.begin(), c.end(), v.begin()),
        "expected one value per index, got values of sizes ", v, " for indices of sizes ", c);
  return batch;
}

void check_dense(const Arg& crow, const Arg& other, size_t batch) {
  const Sizes &r = sizes_of(crow), &d = sizes_of(other);
  check(d.size() == batch + 2 && std::equal(r.begin(), r.begin() + static_cast<int64_t>(batch), d.begin()),
        "expected a dense matrix for each sparse matrix, got sizes ", d, " and compressed indices of sizes ", r);
}

void check_single(size_t batch, const Arg& crow) {
  check(batch == 0, "expected one sparse matrix, got compressed indices of sizes ", sizes_of(crow));
}

// The sizes of the products of a batch of sparse matrices with `rows` rows.
Sizes products(const Arg& other, SymInt rows) {
  Sizes result = sizes_of(other);
  result[result.size() - 2] = rows;
  return result;
}

SymInt rows_of(const Arg& crow) { return sizes_of(crow).back() - 1; }

}  // namespace

Sizes sparse_check_coo(const Arg& indices, const Arg& values, SizesView size) {
  sparse_index(indices);
  const Sizes &i = sizes_of(indices), &v = sizes_of(values);
  check(i.size() == 2, "indices must be sparse_dim x nnz, but got: ", i);
  for (SymInt n : size)
    check(n >= 0, "Trying to create tensor with negative dimension ", n, ": ", Sizes(size.begin(), size.end()));
  check(i[0] <= static_cast<int64_t>(size.size()) && v.size() == 1 + size.size() - static_cast<size_t>(i[0]) &&
            v[0] == i[1] && std::equal(v.begin() + 1, v.end(), size.begin() + int64_t{i[0]}),
        "expected values of sizes (nnz, dense sizes), got values of sizes ", v, ", indices of sizes ", i, " and size ",
        Sizes(size.begin(), size.end()));
  return {};
}

Sizes sparse_check_compressed(const Arg& compressed, const Arg& plain, SymInt compressed_size, SymInt plain_size) {
  check_size(compressed_size);
  check_size(plain_size);
  batch_dims(compressed, plain);
  check(rows_of(compressed) == compressed_size, "expected ", checked_add(compressed_size, 1),
        " compressed indices, got sizes ", sizes_of(compressed));
  return {};
}

Sizes sparse_compress(const Arg& index, SymInt size) {
  check_size(size);
  Sizes result = sizes_of(index);
  check(!result.empty(), "expected indices with at least one dimension");
  result.back() = checked_add(size, 1);
  return result;
}

Sizes sparse_expand(const Arg& compressed, SymInt nnz) {
  check_size(nnz);
  Sizes result = sizes_of(compressed);
  check(!result.empty() && result.back() > 0, "expected compressed indices, got sizes ", result);
  result.back() = nnz;
  return result;
}

Sizes sparse_transposed(const Arg& compressed, const Arg& plain, SymInt size) {
  check_size(size);
  batch_dims(compressed, plain);
  Sizes result = sizes_of(compressed);
  result.back() = checked_add(size, 1);
  return result;
}

Sizes sparse_scatter(const Arg& indices, const Arg& values, SizesView size) {
  sparse_index(indices);
  const Sizes &i = sizes_of(indices), &v = sizes_of(values);
  check(i.size() == 2 && i[0] == static_cast<int64_t>(size.size()), "expected indices of sizes (", size.size(),
        ", entries), got ", i);
  check(!v.empty() && v[0] == i[1], "expected one value per index, got values of sizes ", v, " for indices of sizes ",
        i);
  Sizes result = sizes(size);
  result.insert(result.end(), v.begin() + 1, v.end());
  return result;
}

Sizes sparse_gather(const Arg& input, const Arg& indices) {
  sparse_index(indices);
  const Sizes &x = sizes_of(input), &i = sizes_of(indices);
  check(i.size() == 2 && i[0] <= static_cast<int64_t>(x.size()), "expected indices of at most ", x.size(),
        " dimensions, got sizes ", i);
  Sizes result{i[1]};
  result.insert(result.end(), x.begin() + int64_t{i[0]}, x.end());
  return result;
}

Sizes sparse_csr_mm(const Arg& crow, const Arg& col, const Arg& values, const Arg& other) {
  check_dense(crow, other, batch_dims(crow, col, values, 0));
  return products(other, rows_of(crow));
}

Sizes sparse_csr_mm_transposed(const Arg& crow, const Arg& col, const Arg& values, const Arg& other, SymInt columns) {
  check_size(columns);
  check_dense(crow, other, batch_dims(crow, col, values, 0));
  const Sizes& d = sizes_of(other);
  check(d[d.size() - 2] == rows_of(crow), "expected a dense matrix with ", rows_of(crow), " rows, got sizes ", d);
  return products(other, columns);
}

Sizes sparse_csr_sddmm(const Arg& crow, const Arg& col, const Arg& input, const Arg& other) {
  const size_t batch = batch_dims(crow, col);
  check_dense(crow, input, batch);
  check_dense(crow, other, batch);
  const Sizes &x = sizes_of(input), &y = sizes_of(other);
  check(x.back() == y.back(), "expected rows of one length, got sizes ", x, " and ", y);
  check(x[batch] == rows_of(crow), "expected a dense matrix with ", rows_of(crow), " rows, got sizes ", x);
  return sizes_of(col);
}

Sizes sparse_csr_mm_extremum(const Arg& crow, const Arg& col, const Arg& values, const Arg& other) {
  check_single(batch_dims(crow, col), crow);
  return sparse_csr_mm(crow, col, values, other);
}

Sizes sparse_bsr_mm(const Arg& crow, const Arg& col, const Arg& values, const Arg& other) {
  check_dense(crow, other, batch_dims(crow, col, values, 2));
  const Sizes &v = sizes_of(values), &d = sizes_of(other);
  const SymInt rows = v[v.size() - 2], columns = v.back(), m = d[d.size() - 2];
  check(rows > 0 && columns > 0, "expected blocks of at least one element, got values of sizes ", v);
  check(m % columns == 0, "expected a multiple of the blocks' ", columns, " columns as rows, got sizes ", d);
  return products(other, checked_mul(rows_of(crow), rows));
}

Sizes sparse_csr_sampled_matmul(const Arg& crow1, const Arg& col1, const Arg& values1, const Arg& crow2,
                                const Arg& col2, const Arg& values2, const Arg& crow, const Arg& col, SymInt columns) {
  check_size(columns);
  sparse_index(crow1, crow2, crow);
  check_single(batch_dims(crow1, col1, values1, 0), crow1);
  check_single(batch_dims(crow2, col2, values2, 0), crow2);
  check_single(batch_dims(crow, col), crow);
  check(rows_of(crow) == rows_of(crow1), "expected positions in ", rows_of(crow1), " rows, got ", rows_of(crow));
  return sizes_of(col);
}

Sizes sparse_csr_triangular_solve(const Arg& crow, const Arg& col, const Arg& values, const Arg& other) {
  const size_t batch = batch_dims(crow, col, values, 0);
  check_single(batch, crow);
  check_dense(crow, other, batch);
  check(sizes_of(other)[0] == rows_of(crow), "expected a dense matrix with ", rows_of(crow), " rows, got sizes ",
        sizes_of(other));
  return sizes_of(other);
}

Sizes sparse_softmax(const Arg& values, const Arg& group, SymInt groups) {
  check_size(groups);
  sparse_index(group);
  const Sizes &v = sizes_of(values), &g = sizes_of(group);
  check(!v.empty() && g.size() == 1 && g[0] == v[0], "expected one value per index, got values of sizes ", v,
        " for groups of sizes ", g);
  return v;
}

Checked sparse_adam_step(const Arg& param, const Arg& exp_avg, const Arg& exp_avg_sq, const Arg& rows, const Arg& grad,
                         SymInt step) {
  sparse_index(rows);
  const Sizes &p = sizes_of(param), &r = sizes_of(rows), &g = sizes_of(grad);
  check(step > 0, "expected a step of 1 or more, got ", step);
  check(!p.empty() && sizes_of(exp_avg) == p && sizes_of(exp_avg_sq) == p,
        "expected averages of the parameter's sizes ", p, ", got ", sizes_of(exp_avg), " and ", sizes_of(exp_avg_sq));
  check(r.size() == 1 && g.size() == p.size() && g[0] == r[0] && std::equal(p.begin() + 1, p.end(), g.begin() + 1),
        "expected one row of gradients per index, got gradients of sizes ", g, " for rows of sizes ", r,
        " of a parameter of sizes ", p);
  return {};
}

Sizes sparse_semi_values(const Arg& input) {
  const Sizes& x = sizes_of(input);
  check(x.size() == 2 && x[1] % 16 == 0, "expected a matrix with a multiple of 16 columns, got sizes ", x);
  return {x[0], x[1] / 2};
}

Sizes sparse_semi_meta(const Arg& input) { return {sparse_semi_values(input)[0], sizes_of(input)[1] / 16}; }

namespace {

// Checks the metadata of a matrix of the given sizes.
void check_meta(const Arg& meta, SymInt rows, SymInt columns) {
  check(meta.tensor->dtype == DType::kInt16, "expected metadata of int16, got ", name(meta.tensor->dtype));
  check(columns % 16 == 0 && sizes_of(meta) == Sizes{rows, columns / 16}, "expected metadata of sizes [", rows, ", ",
        columns / 16, "] for ", columns, " columns, a multiple of 16, got sizes ", sizes_of(meta));
}

}  // namespace

Sizes sparse_semi_expand(const Arg& values, const Arg& meta) {
  const Sizes& v = sizes_of(values);
  check(v.size() == 2, "expected a matrix of values, got sizes ", v);
  const SymInt columns = checked_mul(v[1], 2);
  check_meta(meta, v[0], columns);
  return {v[0], columns};
}

Sizes sparse_semi_select(const Arg& input, const Arg& meta) {
  const Sizes result = sparse_semi_values(input);
  check_meta(meta, sizes_of(input)[0], sizes_of(input)[1]);
  return result;
}

Sizes sparse_semi_mm(const Arg& values, const Arg& meta, const Arg& other) {
  const Sizes expanded = sparse_semi_expand(values, meta), &d = sizes_of(other);
  check(d.size() == 2 && d[0] == expanded[1], "expected a dense matrix with ", expanded[1], " rows, got sizes ", d);
  return {expanded[0], d[1]};
}

}  // namespace shape_rules
}  // namespace tt
