// Gradient formulas of functions that are not holomorphic.

#include "autograd/formulas/formulas.h"
#include "engine/dispatch/expression.h"
#include "engine/dispatch/ops.h"

namespace tt::autograd::formulas {
namespace {

const std::complex<double> kI(0, 1);

}  // namespace

Tensor conj(const Tensor& t) { return is_complex(t.dtype()) ? ops::conj_physical(t) : t; }

Tensor conj(const Operand& t) {
  if (t.arg().kind == Arg::Kind::kTensor) return conj(Tensor::from(t.arg().tensor));
  const Scalar number = t.arg().scalar();
  return scalar_tensor(number.is_real() ? number : Scalar(std::conj(number.to_complex())), number.dtype(), Device());
}

Tensor times_i(const Tensor& g) { return ops::mul(g, Scalar(kI)); }

// The derivative is i z / |z|^2 = i / conj(z), and 0 at 0. A real number's angle is constant, so its gradient is 0.
Tensor angle_grad(const Tensor& g, const Operand& input) {
  if (!is_complex(dtype_of(input))) return ops::zeros_like(g);
  const Tensor slope = ops::true_divide(Scalar(kI), conj(input));
  return ops::mul(g, ops::masked_fill(slope, ops::eq(input, int64_t{0}), 0.0));
}

// Returns the component of g perpendicular to z, divided by |z|. The parallel component is dropped, because moving
// along z does not change sgn(z).
Tensor sgn_grad(const Tensor& g, const Operand& input, const Tensor& result) {
  if (!is_complex(dtype_of(input))) return ops::zeros_like(g);
  const Tensor along = ops::mul(ops::real(ops::mul(conj(g), result)), result);
  const Tensor across = ops::true_divide(ops::sub(g, along), ops::abs(input));
  return ops::masked_fill(across, ops::eq(input, int64_t{0}), 0.0);
}

// Gradient of z / n with n = 1 + |z|. It is the sum of the gradient through z and the gradient through n, which is
// parallel to z.
Tensor softsign_grad(const Tensor& g, const Operand& input) {
  const Tensor n = ops::add(ops::abs(input), int64_t{1});
  if (!is_complex(dtype_of(input))) return ops::true_divide(g, ops::square(n));
  const Tensor along = ops::true_divide(ops::real(ops::mul(g, conj(input))), ops::square(n));
  return ops::sub(ops::true_divide(g, n), ops::mul(ops::sgn(input), along));
}

Tensor polar_grad_abs(const Tensor& g, const Operand& angle) {
  const Tensor unit = ops::complex(ops::cos(angle), ops::sin(angle));
  return ops::real(ops::mul(conj(g), unit));
}

Tensor polar_grad_angle(const Tensor& g, const Tensor& result) { return ops::real(ops::mul(conj(g), times_i(result))); }

// For complex numbers, multiplies two square roots, because the square root of the product has a different branch cut.
Tensor acosh_grad(const Tensor& g, const Operand& input) {
  if (!is_complex(dtype_of(input))) return ops::mul(g, ops::rsqrt(ops::sub(ops::mul(input, input), int64_t{1})));
  return ops::mul(g, ops::mul(ops::rsqrt(ops::sub(input, int64_t{1})), ops::rsqrt(ops::add(input, int64_t{1}))));
}

}  // namespace tt::autograd::formulas
