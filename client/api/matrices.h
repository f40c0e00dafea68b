// Checks and small functions of matrices that the files of linalg share. For this folder only.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "client/api/tensor.h"

namespace teletensor::internal {

/// Throws RuntimeError unless A has at least 2 dimensions.
void require_matrix(const Tensor& A, const std::string& function);
/// Throws RuntimeError unless A contains square matrices.
void require_square(const Tensor& A, const std::string& function);
/// The dimension counted from the start. Throws IndexError.
int64_t wrapped_dim(int64_t dim, int64_t ndim);
/// All sizes but the last `dropped`, followed by `added`.
std::vector<int64_t> sizes_with(const Tensor& t, size_t dropped, const std::vector<int64_t>& added);
/// Expands both to their common batch dimensions. Throws RuntimeError if there are none.
std::pair<Tensor, Tensor> broadcast_batches(const Tensor& a, const Tensor& b);
/// n x n identity matrices of `like`'s dtype, device and session, one per matrix of its batch.
Tensor identity_like(const Tensor& like, int64_t n);
Tensor transposed(const Tensor& A);
/// The conjugates of complex numbers; real numbers unchanged.
Tensor conjugate(const Tensor& t);
Tensor adjoint(const Tensor& A);
int64_t product(IntArrayRef sizes);

}  // namespace teletensor::internal
