#include "autograd/formulas/formulas_special.h"

#include "engine/dispatch/ops.h"
#include "engine/schema/error.h"

namespace tt::autograd::formulas {
namespace {

// Returns value / input, and `limit` where input is zero.
Tensor divide_or_limit(const Tensor& value, const Operand& input, double limit) {
  return ops::masked_fill(ops::true_divide(value, input), ops::eq(input, int64_t{0}), limit);
}

}  // namespace

Tensor not_differentiable(const Tensor&, std::string_view name) {
  fail(ErrorKind::kNotImplemented, "derivative for ", name, " is not implemented");
}

Tensor i1_derivative(const Operand& input, const Tensor& result) {
  return ops::sub(ops::i0(input), divide_or_limit(result, input, 0.5));
}

Tensor i1e_derivative(const Operand& input, const Tensor& result) {
  Tensor slope = ops::sub(ops::special_i0e(input), divide_or_limit(result, input, 0.5));
  return ops::sub(slope, ops::mul(ops::sign(input), result));
}

Tensor j1_derivative(const Operand& input, const Tensor& result) {
  return ops::sub(ops::special_bessel_j0(input), divide_or_limit(result, input, 0.5));
}

Tensor spherical_j0_derivative(const Operand& input, const Tensor& result) {
  return divide_or_limit(ops::sub(ops::cos(input), result), input, 0.0);
}

}  // namespace tt::autograd::formulas
