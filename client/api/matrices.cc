#include "client/api/matrices.h"

#include <algorithm>

#include "client/api/errors.h"
#include "client/api/functions.h"
#include "client/api/session.h"

namespace teletensor::internal {

void require_matrix(const Tensor& A, const std::string& function) {
  if (A.dim() < 2) throw RuntimeError(function + ": The input tensor A must have at least 2 dimensions.");
}

void require_square(const Tensor& A, const std::string& function) {
  require_matrix(A, function);
  if (A.size(-1) == A.size(-2)) return;
  throw RuntimeError(function + ": A must be batches of square matrices, but they are " + std::to_string(A.size(-2)) +
                     " by " + std::to_string(A.size(-1)) + " matrices");
}

int64_t wrapped_dim(int64_t dim, int64_t ndim) {
  if (ndim == 0) throw IndexError("Dimension specified as " + std::to_string(dim) + " but tensor has no dimensions");
  if (dim >= -ndim && dim < ndim) return dim < 0 ? dim + ndim : dim;
  throw IndexError("Dimension out of range (expected to be in range of [" + std::to_string(-ndim) + ", " +
                   std::to_string(ndim - 1) + "], but got " + std::to_string(dim) + ")");
}

std::vector<int64_t> sizes_with(const Tensor& t, size_t dropped, const std::vector<int64_t>& added) {
  std::vector<int64_t> sizes = t.sizes().vec();
  sizes.resize(sizes.size() - dropped);
  sizes.insert(sizes.end(), added.begin(), added.end());
  return sizes;
}

std::pair<Tensor, Tensor> broadcast_batches(const Tensor& a, const Tensor& b) {
  const std::vector<int64_t> left = sizes_with(a, 2, {}), right = sizes_with(b, 2, {});
  if (left == right) return {a, b};
  std::vector<int64_t> batch(std::max(left.size(), right.size()), 1);
  for (size_t i = 0; i < batch.size(); ++i) {  // from the last
    const int64_t l = i < left.size() ? left[left.size() - 1 - i] : 1;
    const int64_t r = i < right.size() ? right[right.size() - 1 - i] : 1;
    if (l != r && l != 1 && r != 1) {
      throw RuntimeError("The size of tensor a (" + std::to_string(l) + ") must match the size of tensor b (" +
                         std::to_string(r) + ") at non-singleton dimension " + std::to_string(batch.size() - 1 - i));
    }
    batch[batch.size() - 1 - i] = l == 1 ? r : l;
  }
  const auto expanded = [&](const Tensor& t) {
    std::vector<int64_t> sizes = batch;
    sizes.push_back(t.size(-2));
    sizes.push_back(t.size(-1));
    return t.expand(sizes);
  };
  return {expanded(a), expanded(b)};
}

Tensor identity_like(const Tensor& like, int64_t n) {
  const SessionGuard session(like.session());
  return eye(n, n, like.options()).expand(sizes_with(like, 2, {n, n}));
}

Tensor transposed(const Tensor& A) { return A.transpose(-2, -1); }
Tensor conjugate(const Tensor& t) { return t.is_complex() ? t.conj_physical() : t; }
Tensor adjoint(const Tensor& A) { return conjugate(transposed(A)); }

int64_t product(IntArrayRef sizes) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return count;
}

}  // namespace teletensor::internal
