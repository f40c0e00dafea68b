// Products of two CSR matrices: all of their entries (Gustavson's algorithm), or those at given positions.
#include <algorithm>

#include "engine/device/parallel.h"
#include "engine/schema/error.h"
#include "kernels/common/iteration/element.h"
#include "kernels/common/sparse/index_errors.h"
#include "kernels/cpu/iteration/accumulate_type.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/sparse/indices.h"
#include "kernels/cpu/sparse/product_type.h"

namespace tt::cpu {
namespace {

// For each piece of rows and each column, a sum and the row for which it is valid.
class Workspaces {
 public:
  Workspaces(int64_t pieces, int64_t columns, DType dtype)
      : columns_(columns),
        sums_(empty({pieces, columns}, dtype, Device{})),
        rows_(empty({pieces, columns}, DType::kInt64, Device{})) {
    std::fill_n(rows_.data_as<int64_t>(), rows_.numel(), int64_t{-1});
  }
  int64_t* rows(int64_t piece) const { return rows_.data_as<int64_t>() + piece * columns_; }
  template <typename T>
  T* sums(int64_t piece) const {
    return sums_.data_as<T>() + piece * columns_;
  }

 private:
  int64_t columns_;
  Tensor sums_, rows_;
};

// Pieces have a workspace each, so there are as few as threads. `work`: the number of entries of all rows.
int64_t pieces_of(int64_t rows, int64_t work) {
  const int64_t most = std::min<int64_t>(num_threads(), work / (int64_t{1} << 12));
  return std::clamp<int64_t>(most, 1, std::max<int64_t>(rows, 1));
}

// Calls f(piece, begin, end) for pieces of the rows, in parallel.
void for_row_pieces(int64_t rows, int64_t pieces, absl::FunctionRef<void(int64_t, int64_t, int64_t)> f) {
  parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) f(i, rows * i / pieces, rows * (i + 1) / pieces);
  });
}

// Sets counts[r + 1] to the number of entries of row r of a @ b.
void count_rows(const Csr& a, const Csr& b, int64_t columns, int64_t* counts) {
  const int64_t pieces = pieces_of(a.rows, a.nnz);
  const Workspaces workspaces(pieces, columns, DType::kBool);
  for_row_pieces(a.rows, pieces, [&](int64_t piece, int64_t begin, int64_t end) {
    int64_t* seen = workspaces.rows(piece);
    for (int64_t r = begin; r < end; ++r) {
      int64_t count = 0;
      for (int64_t i = a.crow(0)[r]; i < a.crow(0)[r + 1]; ++i) {
        const int64_t k = a.col(0)[i];
        for (int64_t j = b.crow(0)[k]; j < b.crow(0)[k + 1]; ++j) {
          int64_t& row = seen[b.col(0)[j]];
          count += row != r;
          row = r;
        }
      }
      counts[r + 1] = count;
    }
  });
}

// A row with more than this part of the columns is found by a scan of all columns instead of a sort.
constexpr int64_t kScanned = 16;

template <typename T>
void multiply_rows(const Csr& a, const T* x, const Csr& b, const T* y, int64_t columns, DType dtype,
                   const int64_t* starts, int64_t* col, T* values) {
  const int64_t pieces = pieces_of(a.rows, a.nnz);
  const Workspaces workspaces(pieces, columns, dtype);
  Tensor places = empty({pieces, columns + 1}, DType::kInt64, Device{});  // columns of a row, and one that is ignored
  for_row_pieces(a.rows, pieces, [&](int64_t piece, int64_t begin, int64_t end) {
    int64_t* seen = workspaces.rows(piece);
    T* sums = workspaces.sums<T>(piece);
    int64_t* found = places.data_as<int64_t>() + piece * (columns + 1);
    for (int64_t r = begin; r < end; ++r) {
      int64_t at = starts[r];
      for (int64_t i = a.crow(0)[r]; i < a.crow(0)[r + 1]; ++i) {
        const int64_t k = a.col(0)[i];
        for (int64_t j = b.crow(0)[k]; j < b.crow(0)[k + 1]; ++j) {
          const int64_t c = b.col(0)[j];
          const T product = static_cast<T>(x[i] * y[j]);
          if (seen[c] != r) {
            seen[c] = r;
            sums[c] = product;
            col[at++] = c;
          } else {
            sums[c] = static_cast<T>(sums[c] + product);
          }
        }
      }
      if ((at - starts[r]) * kScanned > columns) {
        int64_t count = 0;
        for (int64_t c = 0; c < columns; ++c) {
          found[count] = c;
          count += seen[c] == r;
        }
        std::copy_n(found, at - starts[r], col + starts[r]);
      } else {
        std::sort(col + starts[r], col + at);
      }
      for (int64_t i = starts[r]; i < at; ++i) values[i] = sums[col[i]];
    }
  });
}

}  // namespace

void sparse_csr_matmul(const Tensor& crow1, const Tensor& col1, const Tensor& values1, const Tensor& crow2,
                       const Tensor& col2, const Tensor& values2, int64_t columns, Tensor& crow, Tensor& col,
                       Tensor& values) {
  check_csr_components(crow1, col1, values1);
  check_csr_components(crow2, col2, values2);
  check(columns >= 0, "expected a size of 0 or more, got ", columns);
  const Csr a = checked_csr(crow1, col1, crow2.size(0) - 1), b = checked_csr(crow2, col2, columns);
  const Tensor x = as_accumulate_type(values1), y = as_accumulate_type(values2);
  Tensor starts = empty({a.rows + 1}, DType::kInt64, crow1.device());
  int64_t* start = starts.data_as<int64_t>();
  start[0] = 0;
  count_rows(a, b, columns, start);
  for (int64_t r = 0; r < a.rows; ++r) start[r + 1] += start[r];
  const int64_t nnz = start[a.rows];
  Tensor plain = empty({nnz}, DType::kInt64, crow1.device());
  values = empty({nnz}, values1.dtype(), values1.device());
  AccumulateBuffer result(values);
  with_product_type(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    multiply_rows(a, x.data_as<T>(), b, y.data_as<T>(), columns, x.dtype(), start, plain.data_as<int64_t>(),
                  result.data<T>());
  });
  result.copy_to_output();
  crow = contiguous_as(starts, crow1.dtype());
  col = contiguous_as(plain, crow1.dtype());
}

void sparse_csr_sampled_matmul(const Tensor& crow1, const Tensor& col1, const Tensor& values1, const Tensor& crow2,
                               const Tensor& col2, const Tensor& values2, const Tensor& crow, const Tensor& col,
                               int64_t columns, Tensor& out) {
  const Csr a = checked_csr(crow1, col1, columns), b = checked_csr(crow2, col2, columns);
  const Csr at = checked_csr(crow, col, b.rows);
  const Tensor x = as_accumulate_type(values1), y = as_accumulate_type(values2);
  AccumulateBuffer result(out);
  with_product_type(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    const T *factors = x.data_as<T>(), *others = y.data_as<T>();
    const int64_t pieces = pieces_of(at.rows, at.nnz);
    const Workspaces workspaces(pieces, columns, x.dtype());
    for_row_pieces(at.rows, pieces, [&](int64_t piece, int64_t begin, int64_t end) {
      int64_t* seen = workspaces.rows(piece);
      T* sums = workspaces.sums<T>(piece);
      for (int64_t r = begin; r < end; ++r) {
        for (int64_t i = a.crow(0)[r]; i < a.crow(0)[r + 1]; ++i) {  // the row of the first matrix, as a dense vector
          const int64_t c = a.col(0)[i];
          sums[c] = seen[c] == r ? static_cast<T>(sums[c] + factors[i]) : factors[i];
          seen[c] = r;
        }
        for (int64_t p = at.crow(0)[r]; p < at.crow(0)[r + 1]; ++p) {
          const int64_t k = at.col(0)[p];
          T sum{};
          for (int64_t j = b.crow(0)[k]; j < b.crow(0)[k + 1]; ++j) {
            const int64_t c = b.col(0)[j];
            if (seen[c] == r) sum = static_cast<T>(sum + sums[c] * others[j]);
          }
          result.data<T>()[p] = sum;
        }
      }
    });
  });
  result.copy_to_output();
}

}  // namespace tt::cpu
