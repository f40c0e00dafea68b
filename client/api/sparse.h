// sparse: matrices and tensors of which few elements are not zero, as their components.
//
// A Coo or Csr owns nothing but references to ordinary tensors of the engine, so that it is used by threads, recorded
// for backward and sent as they are: gradients are those of the values. Its members may be set by the program; the
// engine checks every index that it reads, and reading a result of invalid ones throws RuntimeError. The functions
// compute on the device of the components.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "client/api/tensor.h"

namespace teletensor::sparse {

/// The elements at the columns of `indices`; equal columns are added. Dimensions of `sizes` after the rows of `indices`
/// are dense.
struct Coo {
  Tensor indices;  // [sparse dimensions, elements], int64 or int32
  Tensor values;   // [elements, dense sizes...]
  std::vector<int64_t> sizes;

  /// The same tensor with sorted, distinct indices. Waits for their number.
  Coo coalesce() const;
  Tensor to_dense() const;
};

/// A matrix by rows: those of row i are the elements crow_indices[i] to crow_indices[i + 1].
struct Csr {
  Tensor crow_indices;  // [rows + 1], of the dtype of col_indices
  Tensor col_indices;   // [elements], sorted in each row
  Tensor values;        // [elements]
  std::array<int64_t, 2> sizes;

  Coo to_coo() const;
  Tensor to_dense() const;
};

/// The elements of `dense` that are not zero. Waits for their number. The values have the gradient's path to `dense`.
Coo to_coo(const Tensor& dense);
/// The same for a matrix.
Csr to_csr(const Tensor& dense);
/// Requires two sparse and no dense dimensions. Adds equal indices, and waits for the number of distinct ones.
Csr to_csr(const Coo& matrix);

/// The matrix product a b with a strided matrix [columns of a, n], and a b with a strided vector [columns of a].
Tensor mm(const Csr& a, const Tensor& b);
Tensor mv(const Csr& a, const Tensor& b);
/// The product of the transpose of `a` and a strided matrix [rows of a, n].
Tensor mm_transposed(const Csr& a, const Tensor& b);
/// The sparse product of two sparse matrices. Waits for the number of its elements.
Csr mm(const Csr& a, const Csr& b);
/// `pattern` with the elements of the product a b of strided matrices as its values, of which no others are computed.
Csr sampled_mm(const Csr& pattern, const Tensor& a, const Tensor& b);

}  // namespace teletensor::sparse
