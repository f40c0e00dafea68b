// Functions for `dtype:` and `compute:` in the operators' declarations. Declarations can call only these functions; a
// new rule is written here in C++ and named. Tensors are passed as Args, because a number may replace them. All
// functions throw Error (RuntimeError or TypeError).
#pragma once

#include <initializer_list>
#include <optional>
#include <string_view>

#include "engine/schema/arg.h"
#include "engine/schema/default_float.h"
#include "engine/schema/op.h"

namespace tt::dtype_rules {

using tt::default_float;
using tt::scalar_type_name;

// PyTorch's promotion: tensors with dimensions rank above zero-dim tensors, and zero-dim tensors above numbers. A lower
// rank matters only if its category is higher. Absent optionals are ignored; all entries of a list count.
DType promote_all(std::initializer_list<const Arg*> args);
template <typename... A>
DType promote(const A&... args) {
  return promote_all({&args...});
}
DType same(const Arg& tensor);  // for a number, its default dtype
inline DType boolean() { return DType::kBool; }
inline DType index() { return DType::kInt64; }
// complex128 if an argument is complex, otherwise float64.
DType double_precision_of(DType t);
template <typename... A>
DType double_precision(const A&... args) {
  return double_precision_of(promote(args...));
}

// Integers become the default float.
template <typename... A>
DType floating(const A&... args) {
  const DType t = promote(args...);
  return is_integral(t) ? default_float() : t;
}
// These functions throw if the operator does not support the promoted dtype.
DType require_floating(DType t);
DType require_inexact(DType t);  // floating or complex
DType require_integral(DType t);
template <typename... A>
DType floating_only(const A&... args) {
  return require_floating(promote(args...));
}
// float32 and float64, the compute types of quantization.
inline DType floating_single() { return DType::kFloat32; }
inline DType floating_double() { return DType::kFloat64; }
DType dequantized(const Arg& input, const Arg& scale, const Arg& zero_point);  // float32
// The signed or unsigned integer type of at least 8 bits whose range contains quant_min to quant_max.
DType quantized(const Arg& input, int64_t quant_min, int64_t quant_max, bool is_signed);
DType int8_product(const Arg& input, const Arg& weight);  // int32
// int8 or uint8, after the same checks.
DType int8_requantized(const Arg& input, const Arg& weight, int64_t quant_min, int64_t quant_max, bool is_signed);
DType weight_only(const Arg& input, const Arg& weight, DType wanted);  // the input's
// floating_only(input), after PyTorch's checks of the quantization range.
DType fake_quantize(const Arg& input, int64_t zero_point, int64_t quant_min, int64_t quant_max);
template <typename... A>
DType inexact_only(const A&... args) {
  return require_inexact(promote(args...));
}
template <typename... A>
DType integral(const A&... args) {
  return require_integral(promote(args...));
}
DType not_boolean(const Arg& input);                    // relu, abs, ...
DType not_boolean(const Arg& input, const Arg& other);  // remainders
DType subtractable(const Arg& input, const Arg& other);
DType negatable(const Arg& input);
DType shiftable(const Arg& input, const Arg& other);
DType square(const Arg& input);  // bool becomes int64
// Returns `t`. Checks that a number used as a factor or limit is compatible with `t`.
DType scaled_by(Scalar factor, DType t, std::string_view parameter = "alpha");
// Throws Error (RuntimeError) if the number overflows `t`: out of range, or NaN or infinity for a type without them. As
// in PyTorch, a negative integer whose magnitude is at most the type's maximum wraps around in an unsigned type, and
// all numbers convert to bool.
void check_convertible(const Scalar& number, DType t);
template <typename... S>
DType require_convertible(DType t, const S&... numbers) {
  (check_convertible(Scalar(numbers), t), ...);
  return t;
}
// Returns `t`; requires that the integers from `low` to below `high` are in its range.
DType require_range(std::optional<SymInt> low, std::optional<SymInt> high, DType t);
DType hardtanh(Scalar min, Scalar max, DType t);  // `t`, after the same check
// Rejects complex numbers, for pointwise operators without a complex body.
void require_real(DType compute);
inline DType real_only(DType t) {
  require_real(t);
  return t;
}
DType pow(const Arg& input, const Arg& exponent);
DType div(const Arg& input, const Arg& other, std::optional<std::string_view> rounding_mode);
// The limits of clamp may exceed the range of an integer dtype in the direction in which they have no effect.
DType clamp(const Arg& input, const Arg& min, const Arg& max);
DType clamp_min(const Arg& input, const Arg& min);
DType clamp_max(const Arg& input, const Arg& max);
// The compute dtype of integers of dtype `t` and a limit: wide enough for the limit. Throws Error if none is.
DType clamp_compute(DType t, const Scalar& limit);
DType clamp_compute(DType t, const Arg& limit);
DType lerp(const Arg& input, const Arg& end, const Arg& weight);  // only a zero-dim weight may have another dtype
DType masked(const Arg& input, const Arg& mask, const Arg& value = Arg());
// The dtype in which masked_fill reads `value`: 0.5 is true for booleans, but 0 as an integer.
DType masked_value(const Arg& input, const Arg& value);
DType where(const Arg& condition, const Arg& input, const Arg& other);
DType isclose(const Arg& input, const Arg& other, double rtol, double atol);  // the compute dtype
// Requires that all arguments have one dtype. Numbers are ignored. For equal_floating the dtype must be floating.
DType require_equal(std::initializer_list<const Arg*> args);
template <typename... A>
DType equal(const A&... args) {
  return require_equal({&args...});
}
template <typename... A>
DType equal_floating(const A&... args) {
  return require_floating(require_equal({&args...}));
}

template <typename... A>
DType equal_inexact(const A&... args) {
  return require_inexact(require_equal({&args...}));
}

// Complex types and their parts.
DType real_of(const Arg& input);
inline DType real_of(DType t) { return to_real(t); }
DType angle(const Arg& input);            // real; the default float for integers
DType view_as_complex(const Arg& input);  // requires a floating dtype
DType complex_from_parts(const Arg& real, const Arg& imag);
DType complex_only(const Arg& input);
DType spectrum(const Arg& input);  // the complex dtype of a transform of real numbers
DType signal(const Arg& input);    // the real dtype of an inverse transform

// The given dtype, or a default.
inline DType given_or(std::optional<DType> given, DType otherwise) { return given.value_or(otherwise); }
DType given_floating_or(std::optional<DType> given, DType otherwise);
DType given_inexact_or(std::optional<DType> given, DType otherwise);
// The dtype of a tensor made from numbers: bool, int64 or the default float.
template <typename... S>
DType dtype_of_numbers(const S&... numbers) {
  Category c = Category::kBool;
  ((c = std::max(c, Scalar(numbers).category())), ...);
  if (c == Category::kComplex) return default_complex();
  return c == Category::kBool ? DType::kBool : c == Category::kInteger ? DType::kInt64 : default_float();
}
inline DType linspace(Scalar start, Scalar end) {
  return start.is_real() && end.is_real() ? default_float() : default_complex();
}
DType bincount(const Arg& weights);  // int64 without weights
// The dtype of a sum: int64 for bool and integers.
DType sum(const Arg& tensor);

// Reductions.
DType mean(const Arg& input, std::optional<DType> given);
DType any_all(const Arg& input);   // for any and all: uint8 is kept
DType variance(const Arg& input);  // var, std
DType vector_norm(const Arg& input, std::optional<DType> given);
DType hashed(const Arg& input);  // uint64; refuses complex numbers
// The dtype of a covariance, after the checks of the dtypes of integral and floating-point weights.
DType covariance(const Arg& input, const Arg& fweights = Arg(), const Arg& aweights = Arg());
DType median(const Arg& input);
DType argmax(const Arg& input);

// Products: all arguments have one dtype, which is not bool.
DType product_all(std::initializer_list<const Arg*> args);
template <typename... A>
DType product(const A&... args) {
  return product_all({&args...});
}
DType inner(const Arg& input, const Arg& other);  // product(), or the dtype of input * other if one is zero-dim
DType activation(DType product, bool use_gelu);   // the dtype of relu or gelu applied to a product

DType matrix_function(const Arg& a);  // floating or complex
// Factorisations: float32, float64 or complex; two arguments must have equal dtypes.
DType decomposition(const Arg& a);
DType decomposition(const Arg& a, const Arg& b);
DType real_decomposition(const Arg& a);  // dtype of real results such as singular values
DType real_decomposition(const Arg& a, const Arg& b);
DType complex_decomposition(const Arg& a);  // eigenvalues
inline DType int32() { return DType::kInt32; }
inline DType uint8() { return DType::kUInt8; }
inline DType int8() { return DType::kInt8; }
inline DType int16() { return DType::kInt16; }
// Components of sparse tensors (sparse_rules.cc). The one dtype, int32 or int64, of all tensors of indices.
DType sparse_index_all(std::initializer_list<const Arg*> args);
template <typename... A>
DType sparse_index(const A&... args) {
  return sparse_index_all({&args...});
}
DType sparse_real(const Arg& values, const Arg& other);  // product(), without complex numbers
// Neural networks.
DType cast_floating(const Arg& input, std::optional<DType> given);  // softmax
DType embedding(const Arg& rows, const Arg& indices);
DType max_pool2d_backward(const Arg& values, const Arg& indices);  // requires int64 indices
DType one_hot(const Arg& indices);
// The dtype of a norm's result. weight and bias must have the input's dtype, or float32 with a half-precision input.
DType normalized(const Arg& input, const Arg& weight, const Arg& bias = Arg());
DType avg_pool(const Arg& input);  // floating or int64
// Parameters and statistics of a batch norm share one dtype: the input's, or float32 for 16-bit inputs.
DType batch_normalized(const Arg& input, const Arg& mean, const Arg& var, const Arg& weight, const Arg& bias);
DType rms_normalized(const Arg& input, const Arg& weight);  // also accepts complex inputs, and any real weight
DType attention(const Arg& query, const Arg& key, const Arg& value, const Arg& mask);
DType resampled(const Arg& input);                       // floating or uint8
DType at_least_float32(const Arg& input);                // dtype of means, deviations and logarithms
DType norm_weight(const Arg& input, const Arg& weight);  // the dtype of a norm's weight, or its default
DType nll_loss(const Arg& input, const Arg& target, const Arg& weight);
DType multi_margin_loss(const Arg& input, const Arg& target, const Arg& weight);
DType multilabel_margin_loss(const Arg& input, const Arg& target);
// The dtypes of losses that PyTorch writes into a tensor of the dtype of the input, or of the target: the promoted
// dtype must be castable to it. All of them must be floating.
DType loss_of_input(const Arg& input, const Arg& target);
DType loss_of_target(const Arg& input, const Arg& target, const Arg& weight);
DType binary_cross_entropy(const Arg& input, const Arg& target, const Arg& weight);  // one dtype of input and target
DType kl_div(const Arg& input, const Arg& target);                                   // refuses integers
DType pad_edges(const Arg& input, std::string_view mode);                            // booleans only if circular
DType l1_loss(const Arg& input, const Arg& target);                                  // refuses booleans
// Rule of fused optimizer steps. Requires that gradients and states have their parameter's dtype.
DType optimizer_step_all(std::initializer_list<const Arg*> lists);
template <typename... A>
DType optimizer_step(const A&... lists) {
  return optimizer_step_all({&lists...});
}

}  // namespace tt::dtype_rules
