// Loops of products of sparse with dense matrices. Pointers refer to contiguous matrices.
#pragma once

#include <cstdint>

#include "kernels/cpu/sparse/indices.h"

namespace tt::cpu {

// A BSR matrix whose blocks have `p` rows and `q` columns; a CSR matrix has blocks of one element.
template <typename T>
struct BlockMatrix {
  const int64_t *crow, *col;
  int64_t rows, columns;  // of blocks
  const T* values;
  int64_t p = 1, q = 1;
};

// out = matrix @ other, for k columns. Indices of columns are checked by `range`, which counts blocks.
template <typename T>
void multiply(const BlockMatrix<T>& matrix, const T* other, int64_t k, T* out, IndexCheck& range);

// The same for the transpose of a CSR matrix. Requires that `out` is filled with zeros.
template <typename T>
void multiply_transposed(const BlockMatrix<T>& matrix, const T* other, int64_t k, T* out, IndexCheck& range);

// out[i] = the product of row r of x and row col[i] of y, rows of k elements, for each entry i of row r.
template <typename T>
void multiply_sampled(const BlockMatrix<T>& matrix, const T* x, const T* y, int64_t k, T* out, IndexCheck& range);

}  // namespace tt::cpu
