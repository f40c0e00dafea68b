// softmax and log_softmax over any dimension, and their gradients.
#include "kernels/common/operators/backend.h"

namespace tt::TT_BACKEND {

void softmax(const Tensor& input, int64_t dim, OptionalDType, Tensor& out) { softmax_into(input, dim, false, out); }

void log_softmax(const Tensor& input, int64_t dim, OptionalDType, Tensor& out) { softmax_into(input, dim, true, out); }

void softmax_backward(const Tensor& grad, const Tensor& output, int64_t dim, Tensor& out) {
  softmax_gradient(grad, output, dim, false, out);
}

void log_softmax_backward(const Tensor& grad, const Tensor& output, int64_t dim, Tensor& out) {
  softmax_gradient(grad, output, dim, true, out);
}

}  // namespace tt::TT_BACKEND
