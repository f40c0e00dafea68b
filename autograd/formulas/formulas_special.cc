#include "autograd/formulas/formulas_special.h"

#include <initializer_list>
#include <limits>

#include "engine/dispatch/ops.h"
#include "engine/schema/error.h"

namespace tt::autograd::formulas {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Tensor is_zero(const Operand& input) { return ops::eq(input, int64_t{0}); }

// Returns the polynomial sum(coefficients[k] * x^k).
Tensor polynomial(const Tensor& x, std::initializer_list<double> coefficients) {
  const double* c = coefficients.end() - 1;
  Tensor sum = ops::mul(x, *c);
  while (--c != coefficients.begin()) sum = ops::mul(ops::add(sum, *c), x);
  return ops::add(sum, *c);
}

// A derivative that divides by `input` loses its precision near zero, and is NaN at zero if it is differentiated again.
// Its power series is used there: returns near(x) for the elements x with |x| < `radius`, and far(x) for the others.
// The argument of either function is a constant where the other one is used.
template <typename Near, typename Far>
Tensor by_series_near_zero(const Operand& input, double radius, Near near, Far far) {
  const Tensor is_near = ops::lt(ops::abs(input), radius);
  return ops::where(is_near, near(ops::where(is_near, input, 0.0)), far(ops::where(is_near, 1.0, input)));
}

// The derivative of sin(x) / x, for small x.
Tensor sine_quotient_slope(const Tensor& x) {
  return ops::mul(x, polynomial(ops::square(x), {-1.0 / 3, 1.0 / 30, -1.0 / 840, 1.0 / 45360, -1.0 / 3991680,
                                                 1.0 / 518918400, -1.0 / 93405312000}));
}

// The first coefficients of the derivatives of i1 and j1, as powers of the square of their argument.
constexpr double kBesselSlope[] = {0.5, 3.0 / 16, 5.0 / 384, 7.0 / 18432, 9.0 / 1474560};

}  // namespace

Tensor not_differentiable(const Tensor&, std::string_view name) {
  fail(ErrorKind::kNotImplemented, "derivative for ", name, " is not implemented");
}

Tensor i1_derivative(const Operand& input, const Tensor& result) {
  const auto [a, b, c, d, e] = kBesselSlope;
  return by_series_near_zero(
      input, 0.1,
      [&](const Tensor& x) {
        return polynomial(ops::square(x), {a, b, c, d, e});
      },
      [&](const Tensor& x) { return ops::sub(ops::i0(x), ops::true_divide(result, x)); });
}

Tensor i1e_derivative(const Operand& input, const Tensor& result) {
  const auto [a, b, c, d, e] = kBesselSlope;
  const Tensor slope = by_series_near_zero(
      input, 0.1,
      [&](const Tensor& x) {
        return ops::mul(ops::exp(ops::neg(ops::abs(x))), polynomial(ops::square(x), {a, b, c, d, e}));
      },
      [&](const Tensor& x) { return ops::sub(ops::special_i0e(x), ops::true_divide(result, x)); });
  return ops::sub(slope, ops::mul(ops::sign(input), result));
}

Tensor j1_derivative(const Operand& input, const Tensor& result) {
  const auto [a, b, c, d, e] = kBesselSlope;
  return by_series_near_zero(
      input, 0.1,
      [&](const Tensor& x) {
        return polynomial(ops::square(x), {a, -b, c, -d, e});
      },
      [&](const Tensor& x) { return ops::sub(ops::special_bessel_j0(x), ops::true_divide(result, x)); });
}

Tensor y1_derivative(const Operand& input, const Tensor& result) {
  const Tensor slope = ops::sub(ops::special_bessel_y0(input), ops::true_divide(result, input));
  return ops::masked_fill(slope, is_zero(input), kInfinity);
}

Tensor k0e_derivative(const Operand& input, const Tensor& result) {
  const Tensor slope = ops::sub(result, ops::special_scaled_modified_bessel_k1(input));
  return ops::masked_fill(slope, is_zero(input), -kInfinity);
}

Tensor k1e_derivative(const Operand& input, const Tensor& result) {
  const Tensor slope = ops::sub(result, ops::special_scaled_modified_bessel_k0(input));
  return ops::masked_fill(ops::sub(slope, ops::true_divide(result, input)), is_zero(input), -kInfinity);
}

Tensor spherical_j0_derivative(const Operand& input, const Tensor& result) {
  return by_series_near_zero(input, 0.5, sine_quotient_slope,
                             [&](const Tensor& x) { return ops::true_divide(ops::sub(ops::cos(x), result), x); });
}

Tensor sinc_derivative(const Operand& input) {
  constexpr double kPi = 3.14159265358979323846;
  return by_series_near_zero(
      input, 0.5 / kPi, [](const Tensor& x) { return ops::mul(sine_quotient_slope(ops::mul(x, kPi)), kPi); },
      [&](const Tensor& x) { return ops::true_divide(ops::sub(ops::cos(ops::mul(x, kPi)), ops::sinc(x)), x); });
}

Tensor log_odds_grad(const Tensor& g, const Operand& input) {
  const Tensor slope = ops::true_divide(g, ops::mul(input, ops::rsub(input, int64_t{1})));
  const Tensor outside = ops::logical_or(ops::lt(input, int64_t{0}), ops::gt(input, int64_t{1}));
  return ops::masked_fill(slope, outside, std::numeric_limits<double>::quiet_NaN());
}

Tensor log_ndtr_derivative(const Operand& input, const Tensor& result) {
  constexpr double kDensity = 0.3989422804014327, kRoot = 0.7071067811865476;  // 1 / sqrt(2 pi), sqrt(1 / 2)
  // The density divided by ndtr. Below -1 both underflow, and erfcx does not; above, erfcx overflows.
  const Tensor is_high = ops::gt(input, int64_t{-1});
  const Tensor x = ops::where(is_high, input, -1.0), low = ops::where(is_high, -1.0, input);
  const Tensor exponent = ops::sub(ops::mul(ops::square(x), -0.5), ops::where(is_high, result, 0.0));
  const Tensor far = ops::true_divide(2 * kDensity, ops::special_erfcx(ops::mul(low, -kRoot)));
  return ops::where(is_high, ops::mul(ops::exp(exponent), kDensity), far);
}

}  // namespace tt::autograd::formulas
