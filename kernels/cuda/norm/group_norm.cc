// Group normalisation of N x C x space. Each group of channels of a sample is normalised by its own statistics.
#include "kernels/common/norm/norm_shape.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/norm/row_norm.h"

namespace tt::cuda {
namespace {

RowNorm rows_of(const Tensor& t, int64_t num_groups) {
  const NormGroups shape(t, num_groups);
  return {shape.samples * shape.groups, shape.channels, shape.groups, shape.space};
}

}  // namespace

void group_norm(const Tensor& input, int64_t num_groups, const Tensor& weight, const Tensor& bias, double eps,
                Tensor& output, Tensor& mean, Tensor& rstd) {
  normalize_rows(rows_of(input, num_groups), input, weight, bias, eps, output, mean, rstd);
}

void group_norm_backward(const Tensor& grad, const Tensor& input, const Tensor& weight, const Tensor& mean,
                         const Tensor& rstd, int64_t num_groups, Tensor& grad_input, Tensor& grad_weight,
                         Tensor& grad_bias) {
  normalize_rows_backward(rows_of(input, num_groups), grad, input, weight, mean, rstd, grad_input, grad_weight,
                          grad_bias);
}

}  // namespace tt::cuda
