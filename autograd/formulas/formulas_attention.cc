#include "autograd/formulas/formulas_attention.h"

#include <cmath>

#include "engine/dispatch/ops.h"
#include "engine/schema/error.h"
#include "engine/session/context.h"

namespace tt::autograd::formulas {

Tensors attention_grad(const Tensor& g, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask,
                       const Tensor& output, const Tensor& logsumexp, bool is_causal, double scale, bool allow_cudnn,
                       std::optional<double> excluded, bool rounds, bool empty_rows_are_nan) {
  if (!Context::current().grad_enabled) {
    return ops::attention_backward(g, query, key, value, mask, output, logsumexp, is_causal, scale, allow_cudnn,
                                   excluded, rounds);
  }
  Tensor scores = ops::mul(ops::matmul(query, ops::transpose(key, -2, -1)), scale);
  if (mask) {
    scores = mask.dtype() == DType::kBool ? ops::masked_fill(scores, mask, excluded.value_or(-HUGE_VAL))
                                          : ops::add(scores, mask);
  }
  if (is_causal) {
    const Tensor every = ops::ones(Sizes{query.size(-2), key.size(-2)}, DType::kBool, query.device());
    scores = ops::masked_fill(scores, ops::logical_not(ops::tril(every, 0)), -HUGE_VAL);
  }
  // Rows that the mask excludes have weights of 0. Their softmax is NaN, and so are its derivatives.
  const Tensor empty_rows =
      mask && !empty_rows_are_nan ? ops::all(ops::eq(scores, -HUGE_VAL), Sizes{-1}, true) : Tensor();
  if (empty_rows) scores = ops::masked_fill(scores, empty_rows, 0.0);
  Tensor weights = ops::softmax(scores, -1, std::nullopt);
  if (empty_rows) weights = ops::masked_fill(weights, empty_rows, 0.0);
  const Tensor weight_grad = ops::matmul(g, ops::transpose(value, -2, -1));
  Tensor score_grad = ops::mul(ops::softmax_backward(weight_grad, weights, -1), scale);
  if (mask && mask.dtype() == DType::kBool) score_grad = ops::masked_fill(score_grad, mask, 0.0);  // replaced scores
  return {ops::matmul(score_grad, key), ops::matmul(ops::transpose(score_grad, -2, -1), query),
          ops::matmul(ops::transpose(weights, -2, -1), g)};
}

Tensor no_second_derivative(const Tensor&, std::string_view what) {
  fail(ErrorKind::kNotImplemented, "the second derivative of ", what, " is not implemented");
}

}  // namespace tt::autograd::formulas
