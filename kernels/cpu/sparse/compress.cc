// Compressed indices from sorted ones and back, and the sort of a CSR matrix's entries by column.
#include <algorithm>

#include "engine/device/parallel.h"
#include "kernels/common/sparse/index_errors.h"
#include "kernels/cpu/iteration/contiguous.h"
#include "kernels/cpu/iteration/copy.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/sparse/indices.h"

namespace tt::cpu {
namespace {

template <typename F>
void with_index(DType dtype, F f) {
  dtype == DType::kInt32 ? f(std::type_identity<int32_t>()) : f(std::type_identity<int64_t>());
}

}  // namespace

void sparse_compress(const Tensor& index, int64_t size, Tensor& out) {
  const Tensor from = contiguous(index);
  const int64_t n = from.size(-1), batch = out.numel() / (size + 1);
  IndexCheck range(size);
  range.require_none(index);
  with_index(out.dtype(), [&]<typename T>(std::type_identity<T>) {
    for (int64_t b = 0; b < batch; ++b) {
      const T* row = from.data_as<T>() + b * n;
      T* to = out.data_as<T>() + b * (size + 1);
      int64_t next = 0;  // the compressed index to write
      for (int64_t i = 0; i < n; ++i) {
        const int64_t r = range.checked(row[i]);
        range.rethrow();
        if (r < next - 1) throw sparse_order_error(r, next - 1);
        while (next <= r) to[next++] = static_cast<T>(i);
      }
      while (next <= size) to[next++] = static_cast<T>(n);
    }
  });
}

void sparse_expand(const Tensor& compressed, int64_t nnz, Tensor& out) {
  const Tensor crow = checked_compressed(compressed, nnz);
  const int64_t each = crow.size(-1), batch = crow.numel() / each;
  with_index(out.dtype(), [&]<typename T>(std::type_identity<T>) {
    for (int64_t b = 0; b < batch; ++b) {
      const int64_t* start = crow.data_as<int64_t>() + b * each;
      T* to = out.data_as<T>() + b * nnz;
      for (int64_t r = 0; r + 1 < each; ++r) std::fill(to + start[r], to + start[r + 1], static_cast<T>(r));
    }
  });
}

void sparse_transpose(const Tensor& crow, const Tensor& col, int64_t size, Tensor& compressed, Tensor& plain,
                      Tensor& permutation) {
  const Csr csr = checked_csr(crow, col, size);
  with_index(plain.dtype(), [&]<typename T>(std::type_identity<T>) {
    for (int64_t b = 0; b < csr.batch; ++b) {
      const int64_t *start = csr.crow(b), *column = csr.col(b);
      Tensor places = empty({size + 1}, DType::kInt64, crow.device());  // where to write the next entry of a column
      int64_t* next = places.data_as<int64_t>();
      std::fill_n(next, size + 1, 0);
      for (int64_t i = 0; i < csr.nnz; ++i) ++next[column[i] + 1];
      for (int64_t c = 0; c < size; ++c) next[c + 1] += next[c];
      for (int64_t c = 0; c <= size; ++c) compressed.data_as<T>()[b * (size + 1) + c] = static_cast<T>(next[c]);
      T* row_of = plain.data_as<T>() + b * csr.nnz;
      int64_t* from = permutation.data_as<int64_t>() + b * csr.nnz;
      for (int64_t r = 0; r < csr.rows; ++r) {
        for (int64_t i = start[r]; i < start[r + 1]; ++i) {
          const int64_t to = next[column[i]]++;
          row_of[to] = static_cast<T>(r);
          from[to] = b * csr.nnz + i;
        }
      }
    }
  });
}

}  // namespace tt::cpu
