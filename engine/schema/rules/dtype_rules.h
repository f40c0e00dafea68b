// The vocabulary of `dtype:` and `compute:` in the operators' declarations. Closed: what does not
// fit is written in C++ here, and gets a name. Tensors arrive as Args, since a number of the
// user's may stand in their place. All throw Error (RuntimeError or TypeError).
#pragma once

#include <initializer_list>
#include <optional>
#include <string_view>

#include "engine/schema/arg.h"
#include "engine/schema/op.h"

namespace tt::dtype_rules {

using tt::type_word;

// PyTorch's promotion: tensors with dimensions decide before zero-dim tensors, those before
// numbers; a lower rank counts only where its category is higher. Absent optionals take no part,
// a list's entries all do.
DType promote_all(std::initializer_list<const Arg*> args);
template <typename... A>
DType promote(const A&... args) {
  return promote_all({&args...});
}
DType same(const Arg& tensor);  // a number: its default dtype
inline DType default_float() { return kDefaultFloat; }
inline DType boolean() { return DType::kBool; }
inline DType index() { return DType::kInt64; }
// float64, or complex128 where something is complex.
DType double_precision_of(DType t);
template <typename... A>
DType double_precision(const A&... args) {
  return double_precision_of(promote(args...));
}

// Integers become the default float.
template <typename... A>
DType floating(const A&... args) {
  return to_float(promote(args...));
}
// Refuses what promote() gives where the operator has no meaning for it.
DType require_floating(DType t);
DType require_inexact(DType t);  // floating or complex
DType require_integral(DType t);
template <typename... A>
DType floating_only(const A&... args) {
  return require_floating(promote(args...));
}
DType require_full_precision(DType t);  // float32 or float64
template <typename... A>
DType full_precision(const A&... args) {
  return require_full_precision(promote(args...));
}
template <typename... A>
DType inexact_only(const A&... args) {
  return require_inexact(promote(args...));
}
template <typename... A>
DType integral(const A&... args) {
  return require_integral(promote(args...));
}
DType not_boolean(const Arg& input);                    // relu, abs, ...
DType not_boolean(const Arg& input, const Arg& other);  // subtraction and its like
DType negatable(const Arg& input);
DType shiftable(const Arg& input, const Arg& other);
DType squared(const Arg& input);  // bool becomes int64
// `t`, where a factor or a limit that is a number goes with it.
DType scaled_by(Scalar factor, DType t);
// `t`. Throws Error (RuntimeError) where a number overflows it: beyond its range, or NaN or infinity where it has none.
// As in PyTorch a negative integer of magnitude up to its largest value wraps around in an unsigned type, and all
// numbers convert to bool.
void check_convertible(const Scalar& number, DType t);
template <typename... S>
DType require_convertible(DType t, const S&... numbers) {
  (check_convertible(Scalar(numbers), t), ...);
  return t;
}
// `t`, where integers from `low` to below `high` are in its range.
DType require_range(std::optional<int64_t> low, std::optional<int64_t> high, DType t);
DType above(Scalar limit, DType t);  // unsigned types have no negative limits
// Refuses complex numbers, which pointwise operators without a body for them do not compute.
void require_real(DType compute);
inline DType real_only(DType t) {
  require_real(t);
  return t;
}
DType power(const Arg& input, const Arg& exponent);
DType divided(const Arg& input, const Arg& other, std::optional<std::string_view> rounding_mode);
DType clamped(const Arg& input, const Arg& min, const Arg& max);
DType masked(const Arg& input, const Arg& mask, const Arg& value = Arg());
DType chosen(const Arg& condition, const Arg& input, const Arg& other);
DType closeness(const Arg& input, const Arg& other, double rtol, double atol);  // what isclose computes in
// All arguments of one dtype (a number takes the first's), which is floating for the second form.
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

// Complex numbers, and their parts.
DType real_of(const Arg& input);
inline DType length_of(DType t) { return to_real(t); }
DType phase(const Arg& input);       // real; the default float for integers
DType complex_of(const Arg& input);  // view_as_complex: floating only
DType of_parts(const Arg& real, const Arg& imag);
DType complex_only(const Arg& input);
DType spectrum(const Arg& input);  // complex, of real numbers
DType signal(const Arg& input);    // and back

// What was given, or something else.
inline DType arg(std::optional<DType> given, DType otherwise) { return given.value_or(otherwise); }
DType arg_floating(std::optional<DType> given, DType otherwise);
DType arg_inexact(std::optional<DType> given, DType otherwise);
// Of numbers that become a tensor: bool, int64 or the default float.
template <typename... S>
DType number(const S&... numbers) {
  Category c = Category::kBool;
  ((c = std::max(c, Scalar(numbers).category())), ...);
  if (c == Category::kComplex) return to_complex(kDefaultFloat);
  return c == Category::kBool ? DType::kBool : c == Category::kInteger ? DType::kInt64 : kDefaultFloat;
}
inline DType spanned(Scalar start, Scalar end) {
  return start.is_real() && end.is_real() ? kDefaultFloat : to_complex(kDefaultFloat);
}
DType counted(const Arg& weights);  // bincount's: int64 without weights
// What sums accumulate in and return: int64 for bool and integers.
DType accumulated(const Arg& tensor);

// Reductions.
DType averaged(const Arg& input, std::optional<DType> given);  // mean
DType truth(const Arg& input);                                 // any, all: uint8 stays
DType spread(const Arg& input);                                // var, std
DType normed(const Arg& input, std::optional<DType> given);
DType ordered(const Arg& input);        // median
DType ordered_index(const Arg& input);  // argmax

// Products: all of one dtype, which is not bool.
DType multiplied_all(std::initializer_list<const Arg*> args);
template <typename... A>
DType multiplied(const A&... args) {
  return multiplied_all({&args...});
}
DType activated(DType product, bool use_gelu);  // what relu or gelu of a product is

// Factorisations: float32, float64 or complex, and one of both.
DType decomposed(const Arg& a);
DType decomposed(const Arg& a, const Arg& b);
DType real_decomposed(const Arg& a);  // of the parts: singular values
DType real_decomposed(const Arg& a, const Arg& b);
DType complex_decomposed(const Arg& a);  // eigenvalues
inline DType int32() { return DType::kInt32; }

// Neural networks.
DType cast_floating(const Arg& input, std::optional<DType> given);  // softmax
DType indexed(const Arg& rows, const Arg& indices);
DType at_places(const Arg& values, const Arg& places);  // indices must be int64
DType index_of(const Arg& indices);                     // one_hot
// A norm's result; weight and bias have the input's dtype, or float32 beside a half input.
DType normalized(const Arg& input, const Arg& weight, const Arg& bias = Arg());
DType averaged_windows(const Arg& input);                    // floating or int64
DType root_normalized(const Arg& input, const Arg& weight);  // complex numbers as well
DType statistics(const Arg& input);                          // means and deviations: float32 at least
DType affine(const Arg& input, const Arg& weight);           // what a norm's weight has, or would have
DType likelihood(const Arg& input, const Arg& target, const Arg& weight);
// The fused optimizer steps: gradients and states have their parameter's dtype.
DType step_lists_all(std::initializer_list<const Arg*> lists);
template <typename... A>
DType step_lists(const A&... lists) {
  return step_lists_all({&lists...});
}

}  // namespace tt::dtype_rules
