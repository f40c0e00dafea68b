#include "engine/schema/rules/dtype_rules.h"

#include <algorithm>

#include "engine/schema/error.h"

namespace tt::dtype_rules {
namespace {

DType refuse(DType t) { fail(ErrorKind::kNotImplemented, "not implemented for '", type_word(t), "'"); }

// What the arguments of each rank promote to.
struct Ranks {
  std::optional<DType> dimensioned, zero_dim, number;

  static void join(std::optional<DType>& rank, DType t) { rank = rank ? tt::promote(*rank, t) : t; }
  void add(const TensorMeta& t) { join(t.dim() > 0 ? dimensioned : zero_dim, t.dtype); }
  void add(const Arg& a) {
    if (a.kind == Arg::Kind::kTensor) return add(*a.tensor);
    if (a.kind == Arg::Kind::kTensors) {
      for (const TensorMeta* t : a.list()) {
        if (t) add(*t);
      }
    } else if (a.is_number()) {
      join(number, a.scalar().dtype());
    }
  }
};

// A lower rank changes the result only where its category is higher.
std::optional<DType> merge(std::optional<DType> high, std::optional<DType> low) {
  if (!high) return low;
  if (!low || category(*low) <= category(*high)) return high;
  // A real number's width says what a complex one's is: float64 with 1j is complex128.
  if (is_complex(*low)) return is_floating(*high) ? to_complex(*high) : *low;
  return tt::promote(*high, *low);
}

bool is_bool(const Arg& a) {
  return a.kind == Arg::Kind::kTensor ? a.tensor->dtype == DType::kBool : a.kind == Arg::Kind::kBool;
}

}  // namespace

DType promote_all(std::initializer_list<const Arg*> args) {
  Ranks ranks;
  for (const Arg* a : args) ranks.add(*a);
  return merge(ranks.dimensioned, merge(ranks.zero_dim, ranks.number)).value_or(kDefaultFloat);
}

DType same(const Arg& tensor) {
  return tensor.kind == Arg::Kind::kTensor ? tensor.tensor->dtype : tensor.scalar().dtype();
}

DType require_floating(DType t) { return is_floating(t) ? t : refuse(t); }
DType require_full_precision(DType t) { return t == DType::kFloat32 || t == DType::kFloat64 ? t : refuse(t); }
DType require_inexact(DType t) { return has_gradients(t) ? t : refuse(t); }
DType require_integral(DType t) { return is_integral(t) ? t : refuse(t); }

DType real_of(const Arg& input) { return to_real(same(input)); }
DType phase(const Arg& input) { return to_real(floating(input)); }

DType complex_of(const Arg& input) {
  const DType t = same(input);
  check(
      is_floating(t),
      "view_as_complex is only supported for floating point tensors, but got a tensor of scalar type: ", type_word(t));
  check_as(ErrorKind::kNotImplemented, item_size(t) >= 4, "there are no complex numbers of ", name(t), " parts");
  return to_complex(t);
}

DType of_parts(const Arg& real, const Arg& imag) {
  for (const Arg* part : {&real, &imag}) {
    check_as(ErrorKind::kType, part->kind == Arg::Kind::kTensor, "both parts must be Tensors, got a number");
  }
  const DType a = same(real), b = same(imag);
  check_as(ErrorKind::kNotImplemented, is_floating(a) && is_floating(b),
           "Expected both inputs to be Half, Float or Double tensors but got ", type_word(a), " and ", type_word(b));
  check(a == b, "Expected object of scalar type ", type_word(a), " but got scalar type ", type_word(b),
        " for second argument");
  check_as(ErrorKind::kNotImplemented, item_size(a) >= 4, "there are no complex numbers of ", name(a), " parts");
  return to_complex(a);
}

DType not_boolean(const Arg& input) {
  DType t = same(input);
  return t == DType::kBool ? refuse(t) : t;
}

DType not_boolean(const Arg& input, const Arg& other) {
  check(!is_bool(input) || !is_bool(other),
        "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` "
        "operator instead.");
  return promote(input, other);
}

DType negatable(const Arg& input) {
  check_as(ErrorKind::kNotImplemented, !is_bool(input),
           "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the "
           "`~` or `logical_not()` operator instead.");
  return same(input);
}

DType shiftable(const Arg& input, const Arg& other) {
  DType t = require_integral(promote(input, other));
  return t == DType::kBool ? refuse(t) : t;
}

DType double_precision_of(DType t) { return is_complex(t) ? DType::kComplex128 : DType::kFloat64; }

DType scaled_by(Scalar factor, DType t) {
  check(factor.category() != Category::kBool || t == DType::kBool, "Boolean alpha only supported for Boolean results.");
  check(!is_integral(t) || factor.category() <= Category::kInteger,
        "For integral input tensors, argument alpha must not be a floating point number.");
  check(is_complex(t) || factor.is_real(),
        "For non-complex input tensors, argument alpha must not be a complex number.");
  return t;
}

DType above(Scalar limit, DType t) {
  check(!is_unsigned(t) || limit.to_double() >= 0, "cannot do hardtanh on an unsigned type with negative limits");
  return t;
}

void require_real(DType compute) {
  check_as(ErrorKind::kNotImplemented, !is_complex(compute), "not implemented for '", type_word(compute), "'");
}

DType power(const Arg& input, const Arg& exponent) {
  DType t = promote(input, exponent);
  check(!is_integral(t) || exponent.kind != Arg::Kind::kInt || exponent.integer >= 0,
        "Integers to negative integer powers are not allowed.");
  return t;
}

DType divided(const Arg& input, const Arg& other, std::optional<std::string_view> rounding_mode) {
  if (!rounding_mode) return floating(input, other);
  check(*rounding_mode == "trunc" || *rounding_mode == "floor",
        "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '", *rounding_mode, "'");
  return promote(input, other);
}

DType clamped(const Arg& input, const Arg& min, const Arg& max) {
  check(!min.is_none() || !max.is_none(), "At least one of 'min' or 'max' must not be None");
  return promote(input, min, max);
}

DType masked(const Arg& input, const Arg& mask, const Arg& value) {
  check(is_bool(mask), "masked_fill only supports boolean masks, but got mask with dtype ", name(same(mask)));
  const DType t = same(input);
  check(value.kind != Arg::Kind::kTensor || is_complex(t) || !is_complex(same(value)),
        "value cannot be converted to type ", c_word(t), " without overflow");
  return t;
}

DType chosen(const Arg& condition, const Arg& input, const Arg& other) {
  check(is_bool(condition) || same(condition) == DType::kUInt8,
        "where expected condition to be a boolean tensor, but got a tensor with dtype ", name(same(condition)));
  return promote(input, other);
}

DType closeness(const Arg& input, const Arg& other, double rtol, double atol) {
  check(rtol >= 0, "rtol must be greater than or equal to zero, but got ", rtol);
  check(atol >= 0, "atol must be greater than or equal to zero, but got ", atol);
  return promote(input, other);
}

DType require_equal(std::initializer_list<const Arg*> args) {
  std::optional<DType> common;
  for (const Arg* a : args) {
    if (a->kind != Arg::Kind::kTensor) continue;
    if (!common) common = a->tensor->dtype;
    check(*common == a->tensor->dtype, "expected all tensors to have the same dtype, got ", name(*common), " and ",
          name(a->tensor->dtype));
  }
  return common.value_or(kDefaultFloat);
}

DType arg_floating(std::optional<DType> given, DType otherwise) {
  DType t = given.value_or(otherwise);
  return is_floating(t) ? t : refuse(t);
}

DType squared(const Arg& input) { return same(input) == DType::kBool ? DType::kInt64 : same(input); }

DType arg_inexact(std::optional<DType> given, DType otherwise) { return require_inexact(given.value_or(otherwise)); }

DType counted(const Arg& weights) {
  if (weights.is_none()) return DType::kInt64;
  require_real(same(weights));
  return same(weights) == DType::kFloat32 ? DType::kFloat32 : DType::kFloat64;
}

DType accumulated(const Arg& tensor) { return is_integral(same(tensor)) ? DType::kInt64 : same(tensor); }

}  // namespace tt::dtype_rules
