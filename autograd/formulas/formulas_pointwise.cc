// Gradient formulas of pointwise operators that need more than one line.

#include "autograd/formulas/formulas.h"
#include "autograd/formulas/region.h"
#include "engine/dispatch/expression.h"
#include "engine/dispatch/ops.h"

namespace tt::autograd::formulas {
namespace {

// 16-bit floats as float32, for formulas of several steps, each of which would round.
Tensor wide(const Operand& value) { return ops::to_dtype(value, DType::kFloat32); }

}  // namespace

Tensor cast(const Tensor& g, DType dtype) {
  if (g.dtype() == dtype) return g;
  return ops::to_dtype(g, dtype);
}

Tensor pow_grad_input(const Tensor& g, const Operand& input, const Operand& exponent) {
  if (exponent.arg().is_number()) {
    Scalar e = exponent.arg().scalar();
    if (!e.to_bool()) return ops::zeros_like(g);
    if (!e.is_real()) return ops::mul(g, ops::mul(ops::pow(input, Scalar(e.to_complex() - 1.0)), e));
    return ops::mul(g, ops::mul(ops::pow(input, e.to_double() - 1), e.to_double()));
  }
  Tensor slope = ops::mul(exponent, ops::pow(input, ops::sub(exponent, int64_t{1})));
  return ops::masked_fill(ops::mul(g, slope), ops::eq(exponent, int64_t{0}), 0.0);
}

Tensor pow_grad_exponent(const Tensor& g, const Operand& input, const Operand& exponent, const Tensor& result) {
  const bool is_real = !is_complex(dtype_of(exponent));
  const Tensor not_below =
      is_real ? ops::ge(exponent, int64_t{0}) : ops::ge(ops::real(Tensor::from(exponent.arg().tensor)), int64_t{0});
  Tensor flat = ops::logical_and(ops::eq(input, int64_t{0}), not_below);
  if (is_real || is_complex(dtype_of(input)))
    return ops::mul(g, ops::masked_fill(ops::mul(result, ops::log(input)), flat, 0.0));
  // Negative numbers have a logarithm as complex ones. Formulas receive conjugates.
  const Tensor base = ops::add(ops::zeros_like(Tensor::from(exponent.arg().tensor)), input);
  return ops::mul(g, ops::masked_fill(ops::mul(result, ops::conj_physical(ops::log(base))), flat, 0.0));
}

Tensor greater_equal_or_nan(const Operand& input, const Operand& other) {
  return ops::logical_or(ops::ge(input, other), ops::isnan(other));
}
Tensor not_greater_equal(const Operand& input, const Operand& other) {
  return ops::logical_not(greater_equal_or_nan(input, other));
}
Tensor less_equal_or_nan(const Operand& input, const Operand& other) {
  return ops::logical_or(ops::le(input, other), ops::isnan(other));
}
Tensor not_less_equal(const Operand& input, const Operand& other) {
  return ops::logical_not(less_equal_or_nan(input, other));
}

// exp(input - logaddexp) is NaN if both are infinite. The sigmoid of complex numbers overflows.
Tensor logaddexp_share(const Operand& input, const Operand& other) {
  const bool is_real = !is_complex(dtype_of(input)) && !is_complex(dtype_of(other));
  return is_real ? ops::sigmoid(ops::sub(input, other)) : ops::exp(ops::sub(input, ops::logaddexp(input, other)));
}

Tensor mish_grad(const Tensor& g, const Operand& input) {
  if (const DType t = g.dtype(); is_reduced_floating(t)) return ops::to_dtype(mish_grad(wide(g), wide(input)), t);
  Tensor t = ops::tanh(ops::softplus(input));
  Tensor curve = ops::mul(ops::mul(input, ops::sigmoid(input)), ops::rsub(ops::mul(t, t), int64_t{1}));
  return ops::mul(g, ops::add(t, curve));
}

Tensor hardswish_grad(const Tensor& g, const Operand& input) {
  if (const DType t = g.dtype(); is_reduced_floating(t)) return ops::to_dtype(hardswish_grad(wide(g), wide(input)), t);
  const Tensor slope = ops::add(ops::true_divide(input, int64_t{3}), 0.5);
  const Tensor within = ops::where(ops::lt(input, int64_t{3}), ops::mul(g, slope), g);
  return ops::where(ops::le(input, int64_t{-3}), ops::zeros_like(g), within);
}

// The second derivative is s (1 - s) (2 + x (1 - 2 s)) with s = sigmoid(x).
Tensor silu_second_derivative(const Tensor& g, const Operand& input) {
  Tensor s = ops::sigmoid(input);
  Tensor slope = ops::mul(s, ops::rsub(s, int64_t{1}));
  Tensor rest = ops::add(ops::mul(input, ops::rsub(ops::mul(s, int64_t{2}), int64_t{1})), int64_t{2});
  return ops::mul(g, ops::mul(slope, rest));
}

// Second derivative of x (1 + tanh u) / 2 with u = k (x + c x^3). With t = tanh u and d = 1 - t^2, the result is d u' +
// x d (u'' / 2 - t u'^2).
Tensor gelu_tanh_second_derivative(const Operand& input) {
  constexpr double k = 0.79788456080286535588, c = 0.044715;
  Tensor square = ops::mul(input, input);
  Tensor u = ops::mul(ops::mul(input, ops::add(ops::mul(square, c), int64_t{1})), k);
  Tensor u1 = ops::mul(ops::add(ops::mul(square, 3 * c), int64_t{1}), k);
  Tensor half_u2 = ops::mul(input, 3 * k * c);
  Tensor t = ops::tanh(u);
  Tensor d = ops::rsub(ops::mul(t, t), int64_t{1});
  Tensor bend = ops::sub(half_u2, ops::mul(t, ops::mul(u1, u1)));
  return ops::mul(d, ops::add(u1, ops::mul(input, bend)));
}

// ---- clamp

namespace {

bool is_tensor(const Operand& bound) { return bound.has_value() && !bound.arg().is_number(); }

// `g` where the input is at `bound` is halved, unless the other bound is there too.
Tensor halved_at(const Tensor& g, const Operand& input, const Operand& bound, const Operand& min, const Operand& max) {
  Tensor at_bound = ops::eq(input, bound);
  if (min.has_value() && max.has_value()) at_bound = ops::logical_and(at_bound, ops::lt(min, max));
  return ops::where(at_bound, ops::mul(g, 0.5), g);
}

}  // namespace

Tensor clamp_grad(const Tensor& g, const Operand& input, const Operand& min, const Operand& max) {
  if (!is_tensor(min) && !is_tensor(max)) {
    Tensor result = g;
    if (min.has_value()) result = ops::where(ops::gt(input, min), result, 0.0);
    if (max.has_value()) result = ops::where(ops::lt(input, max), result, 0.0);
    return result;
  }
  Tensor result = g;
  if (min.has_value()) result = ops::masked_fill(halved_at(result, input, min, min, max), ops::lt(input, min), 0.0);
  if (max.has_value()) result = ops::masked_fill(halved_at(result, input, max, min, max), ops::gt(input, max), 0.0);
  return result;
}

Tensor clamp_grad_min(const Tensor& g, const Operand& input, const Operand& min, const Operand& max) {
  const Tensor half = halved_at(g, input, min, min, max);
  if (!max.has_value()) return ops::masked_fill(half, ops::gt(input, min), 0.0);
  const Tensor below = ops::logical_and(ops::lt(input, min), ops::le(min, max));
  const Tensor at_bound = ops::logical_and(ops::eq(input, min), ops::lt(min, max));
  return ops::where(ops::logical_or(below, at_bound), half, 0.0);
}

Tensor clamp_grad_max(const Tensor& g, const Operand& input, const Operand& min, const Operand& max) {
  const Tensor half = halved_at(g, input, max, min, max);
  if (!min.has_value()) return ops::masked_fill(half, ops::lt(input, max), 0.0);
  const Tensor above = ops::logical_or(ops::gt(input, max), ops::lt(max, min));
  const Tensor at_bound = ops::logical_and(ops::eq(input, max), ops::lt(min, max));
  return ops::where(ops::logical_or(above, at_bound), half, 0.0);
}

}  // namespace tt::autograd::formulas
