#include "engine/rules/dtype_rules.h"

#include <algorithm>

#include "engine/rules/error.h"

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
  return tt::promote(*high, *low);
}

bool is_bool(const Arg& a) {
  return a.kind == Arg::Kind::kTensor ? a.tensor->dtype == DType::kBool : a.kind == Arg::Kind::kBool;
}

}  // namespace

std::string_view type_word(DType t) {
  switch (t) {
    case DType::kBool: return "Bool";
    case DType::kUInt8: return "Byte";
    case DType::kInt8: return "Char";
    case DType::kInt16: return "Short";
    case DType::kInt32: return "Int";
    case DType::kInt64: return "Long";
    case DType::kFloat16: return "Half";
    case DType::kBFloat16: return "BFloat16";
    case DType::kFloat32: return "Float";
    case DType::kFloat64: return "Double";
    case DType::kComplex64: return "ComplexFloat";
    case DType::kComplex128: return "ComplexDouble";
  }
  return "?";
}

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
DType require_integral(DType t) { return is_integral(t) ? t : refuse(t); }

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

DType masked(const Arg& input, const Arg& mask) {
  check(is_bool(mask), "masked_fill only supports boolean masks, but got mask with dtype ", name(same(mask)));
  return same(input);
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

DType counted(const Arg& weights) {
  if (weights.is_none()) return DType::kInt64;
  return same(weights) == DType::kFloat32 ? DType::kFloat32 : DType::kFloat64;
}

DType accumulated(const Arg& tensor) { return is_integral(same(tensor)) ? DType::kInt64 : same(tensor); }

}  // namespace tt::dtype_rules
