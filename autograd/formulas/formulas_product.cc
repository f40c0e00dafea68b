// Gradient formulas of matrix products.

#include "autograd/formulas/formulas.h"
#include "engine/dispatch/ops.h"

namespace tt::autograd::formulas {
namespace {

Tensor transposed(const Tensor& t) { return ops::transpose(t, -2, -1); }

// Flattens all dimensions but the last into one.
Tensor as_matrix(const Tensor& t) {
  int64_t rows = 1;  // computed without division, because the last dimension may be empty
  for (int64_t d = 0; d + 1 < t.dim(); ++d) rows *= t.size(d);
  return ops::reshape(t, Sizes{rows, t.dim() == 0 ? 1 : t.size(-1)});
}

}  // namespace

Tensor matmul_grad_input(const Tensor& g, const Tensor& input, const Tensor& other) {
  if (other.dim() == 1) return ops::mul(ops::unsqueeze(g, -1), other);
  if (input.dim() == 1) {
    Tensor row = ops::matmul(ops::unsqueeze(g, -2), transposed(other));
    return sum_to(ops::squeeze_dim(row, Sizes{-2}), input.sizes());
  }
  return sum_to(ops::matmul(g, transposed(other)), input.sizes());
}

Tensor matmul_grad_other(const Tensor& g, const Tensor& input, const Tensor& other) {
  if (input.dim() == 1 && other.dim() == 1) return ops::mul(g, input);
  if (input.dim() == 1) return sum_to(ops::mul(ops::unsqueeze(input, -1), ops::unsqueeze(g, -2)), other.sizes());
  if (other.dim() == 1) {
    Tensor column = ops::matmul(ops::reshape(g, Sizes{1, g.numel()}), as_matrix(input));
    return ops::reshape(column, other.sizes());
  }
  // If all batches multiply the same matrix, one product over all rows gives its gradient.
  if (other.dim() == 2) return ops::matmul(transposed(as_matrix(input)), as_matrix(g));
  return sum_to(ops::matmul(transposed(input), g), other.sizes());
}

}  // namespace tt::autograd::formulas
