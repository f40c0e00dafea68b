// Products of CSR, BSR and 2:4 matrices with dense ones, and the products of rows at the positions of a CSR matrix.
#include <algorithm>

#include "engine/device/parallel.h"
#include "engine/schema/error.h"
#include "kernels/common/iteration/element.h"
#include "kernels/cpu/iteration/accumulate_type.h"
#include "kernels/cpu/iteration/copy.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/sparse/indices.h"
#include "kernels/cpu/sparse/product_type.h"
#include "kernels/cpu/sparse/row_products.h"

namespace tt::cpu {
namespace {

// One matrix of a batch. `values` are in the type of computation.
template <typename T>
BlockMatrix<T> matrix_of(const Csr& csr, int64_t b, int64_t columns, const Tensor& values, int64_t p = 1,
                         int64_t q = 1) {
  return {csr.crow(b), csr.col(b), csr.rows, columns, values ? values.data_as<T>() + b * csr.nnz * p * q : nullptr,
          p,           q};
}

// The indices for a product with matrices of k columns. Without columns the loops do not read, and check, the plain
// ones.
Csr indices_for(const Tensor& crow, const Tensor& col, int64_t columns, int64_t k) {
  return k == 0 ? checked_csr(crow, col, columns) : compressed_indices(crow, col);
}

// out = matrices @ other, where blocks have p rows and q columns.
void multiply_batch(const Tensor& crow, const Tensor& col, const Tensor& values, const Tensor& other, int64_t p,
                    int64_t q, Tensor& out) {
  const int64_t m = other.size(-2), k = other.size(-1);
  const Csr csr = indices_for(crow, col, m / q, k);
  IndexCheck range(m / q);
  range.require_none(col);
  const Tensor factors = as_accumulate_type(values), dense = as_accumulate_type(other);
  AccumulateBuffer result(out);
  with_product_type(factors.dtype(), [&]<typename T>(std::type_identity<T>) {
    for (int64_t b = 0; b < csr.batch; ++b) {
      multiply(matrix_of<T>(csr, b, m / q, factors, p, q), dense.data_as<T>() + b * m * k, k,
               result.data<T>() + b * csr.rows * p * k, range);
    }
  });
  range.rethrow();
  result.copy_to_output();
}

}  // namespace

void sparse_csr_mm(const Tensor& crow, const Tensor& col, const Tensor& values, const Tensor& other, Tensor& out) {
  multiply_batch(crow, col, values, other, 1, 1, out);
}

void sparse_bsr_mm(const Tensor& crow, const Tensor& col, const Tensor& values, const Tensor& other, Tensor& out) {
  multiply_batch(crow, col, values, other, values.size(-2), values.size(-1), out);
}

void sparse_csr_mm_transposed(const Tensor& crow, const Tensor& col, const Tensor& values, const Tensor& other,
                              int64_t columns, Tensor& out) {
  const int64_t k = other.size(-1);
  const Csr csr = indices_for(crow, col, columns, k);
  IndexCheck range(columns);
  range.require_none(col);
  const Tensor factors = as_accumulate_type(values), dense = as_accumulate_type(other);
  AccumulateBuffer result(out);
  fill_with(result.tensor(), Scalar(int64_t{0}));
  with_product_type(factors.dtype(), [&]<typename T>(std::type_identity<T>) {
    for (int64_t b = 0; b < csr.batch; ++b) {
      multiply_transposed(matrix_of<T>(csr, b, columns, factors), dense.data_as<T>() + b * csr.rows * k, k,
                          result.data<T>() + b * columns * k, range);
    }
  });
  range.rethrow();
  result.copy_to_output();
}

void sparse_csr_sddmm(const Tensor& crow, const Tensor& col, const Tensor& input, const Tensor& other, Tensor& out) {
  const int64_t m = other.size(-2), k = other.size(-1);
  const Csr csr = compressed_indices(crow, col);
  IndexCheck range(m);
  range.require_none(col);
  const Tensor x = as_accumulate_type(input), y = as_accumulate_type(other);
  AccumulateBuffer result(out);
  with_product_type(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    for (int64_t b = 0; b < csr.batch; ++b) {
      multiply_sampled(matrix_of<T>(csr, b, m, Tensor()), x.data_as<T>() + b * csr.rows * k, y.data_as<T>() + b * m * k,
                       k, result.data<T>() + b * csr.nnz, range);
    }
  });
  range.rethrow();
  result.copy_to_output();
}

void sparse_semi_mm(const Tensor& values, const Tensor& meta, const Tensor& other, Tensor& out) {
  const int64_t rows = values.size(0), each = values.size(1);
  const Tensor words = contiguous(meta);
  // The matrix as CSR: each row has `each` entries.
  Tensor starts = empty({rows + 1}, DType::kInt64, values.device());
  Tensor columns = empty({rows * each}, DType::kInt64, values.device());
  for (int64_t r = 0; r <= rows; ++r) starts.data_as<int64_t>()[r] = r * each;
  parallel_for(rows, std::max<int64_t>(1, (1 << 14) / std::max<int64_t>(each, 1)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin * each; i < end * each; ++i) {
      const auto word = static_cast<uint16_t>(words.data_as<int16_t>()[i / 8]);
      columns.data_as<int64_t>()[i] = (i % each) / 2 * 4 + ((word >> (i % 8 * 2)) & 3);
    }
  });
  multiply_batch(starts, columns, values, other, 1, 1, out);
}

namespace {

// The largest or smallest product of each column of a row of the result. As in PyTorch, NaN wins.
template <typename T>
void extremum_row(const BlockMatrix<T>& m, int64_t r, const T* other, int64_t k, bool largest, T* out, int64_t* entry,
                  IndexCheck& range) {
  std::fill_n(out, k, T(0));
  std::fill_n(entry, k, int64_t{-1});
  for (int64_t i = m.crow[r]; i < m.crow[r + 1]; ++i) {
    const T* from = other + range.checked(m.col[i]) * k;
    for (int64_t j = 0; j < k; ++j) {
      const T product = static_cast<T>(m.values[i] * from[j]);
      const bool better = largest ? product > out[j] : product < out[j];
      if (entry[j] < 0 || better || (is_nan(product) && !is_nan(out[j]))) {
        out[j] = product;
        entry[j] = i;
      }
    }
  }
}

}  // namespace

void sparse_csr_mm_extremum(const Tensor& crow, const Tensor& col, const Tensor& values, const Tensor& other,
                            bool largest, Tensor& output, Tensor& argument) {
  const int64_t k = other.size(-1);
  const Csr csr = compressed_indices(crow, col);
  IndexCheck range(other.size(-2));
  range.require_none(col);
  const Tensor factors = as_accumulate_type(values), dense = as_accumulate_type(other);
  AccumulateBuffer result(output);
  with_product_type(factors.dtype(), [&]<typename T>(std::type_identity<T>) {
    if constexpr (!is_complex_v<T>) {
      const BlockMatrix<T> m = matrix_of<T>(csr, 0, other.size(-2), factors);
      parallel_for_rows(m.crow, m.rows, k, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          extremum_row(m, r, dense.data_as<T>(), k, largest, result.data<T>() + r * k,
                       argument.data_as<int64_t>() + r * k, range);
        }
      });
    }
  });
  range.rethrow();
  result.copy_to_output();
}

}  // namespace tt::cpu
