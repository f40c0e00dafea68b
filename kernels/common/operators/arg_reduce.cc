// max and min along a dimension, argmax and argmin.
#include "kernels/common/operators/backend.h"

namespace tt::TT_BACKEND {

void max_dim(const Tensor& input, int64_t dim, bool, Tensor& values, Tensor& indices) {
  find_extrema(true, input, dim, &values, indices);
}

void min_dim(const Tensor& input, int64_t dim, bool, Tensor& values, Tensor& indices) {
  find_extrema(false, input, dim, &values, indices);
}

void argmax(const Tensor& input, std::optional<int64_t> dim, bool, Tensor& out) {
  find_extrema(true, input, dim, nullptr, out);
}

void argmin(const Tensor& input, std::optional<int64_t> dim, bool, Tensor& out) {
  find_extrema(false, input, dim, nullptr, out);
}

}  // namespace tt::TT_BACKEND
