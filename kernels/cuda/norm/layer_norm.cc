// Layer and RMS normalisation. Each row is normalised by its own statistics.
#include "kernels/common/norm/norm_shape.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/norm/row_norm.h"

namespace tt::cuda {
namespace {

using List = absl::Span<const int64_t>;

RowNorm rows_of(const Tensor& t, List normalized_shape) {
  const NormRows shape(t, normalized_shape);
  return {shape.rows, shape.n};
}

}  // namespace

void layer_norm(const Tensor& input, List normalized_shape, const Tensor& weight, const Tensor& bias, double eps,
                Tensor& output, Tensor& mean, Tensor& rstd) {
  normalize_rows(rows_of(input, normalized_shape), input, weight, bias, eps, output, mean, rstd);
}

void layer_norm_backward(const Tensor& grad, const Tensor& input, const Tensor& weight, const Tensor& mean,
                         const Tensor& rstd, List normalized_shape, Tensor& grad_input, Tensor& grad_weight,
                         Tensor& grad_bias) {
  normalize_rows_backward(rows_of(input, normalized_shape), grad, input, weight, mean, rstd, grad_input, grad_weight,
                          grad_bias);
}

void rms_norm(const Tensor& input, List normalized_shape, const Tensor& weight, double eps, Tensor& output,
              Tensor& rstd) {
  normalize_rows(rows_of(input, normalized_shape), input, weight, Tensor(), eps, output, Tensor(), rstd);
}

void rms_norm_backward(const Tensor& grad, const Tensor& input, const Tensor& weight, const Tensor& rstd,
                       List normalized_shape, Tensor& grad_input, Tensor& grad_weight) {
  normalize_rows_backward(rows_of(input, normalized_shape), grad, input, weight, Tensor(), rstd, grad_input,
                          grad_weight, Tensor());
}

}  // namespace tt::cuda
