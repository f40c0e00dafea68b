#include "engine/schema/rules/dtype_rules.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "engine/schema/error.h"

namespace tt::dtype_rules {
namespace {

DType refuse(DType t) { fail(ErrorKind::kNotImplemented, "not implemented for '", scalar_type_name(t), "'"); }

// The promoted dtype of each rank's arguments.
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

// A lower rank changes the result only if its category is higher.
std::optional<DType> merge(std::optional<DType> high, std::optional<DType> low) {
  if (!high) return low;
  if (!low || category(*low) <= category(*high)) return high;
  // The real dtype determines the width of the complex one: float64 with 1j is complex128.
  if (is_complex(*low)) return is_floating(*high) ? to_complex(*high) : *low;
  return tt::promote(*high, *low);
}

DType to_real_or_self(DType t) { return is_complex(t) ? to_real(t) : t; }

// The largest finite value of a floating dtype.
double largest_of(DType t) {
  switch (t) {
    case DType::kFloat8E4m3fn: return 448;
    case DType::kFloat8E5m2: return 57344;
    case DType::kFloat16: return 65504;
    case DType::kBFloat16: return (2 - 0x1p-7) * 0x1p127;
    case DType::kFloat32: return std::numeric_limits<float>::max();
    default: return std::numeric_limits<double>::max();
  }
}

// PyTorch's name for the type a number is converted to.
std::string number_type_name(DType t) {
  if (is_complex(t)) return t == DType::kComplex64 ? "c10::complex<float>" : "c10::complex<double>";
  if (is_floating(t)) return std::string(cpp_type_name(t));
  return t == DType::kInt32 ? "int" : std::string(name(t)) + "_t";
}

// Whether the truncated real part of a number is in the range of an integral dtype other than bool.
bool integer_fits(const Scalar& number, DType t) {
  const int bits = 8 * static_cast<int>(item_size(t)) - (is_unsigned(t) ? 0 : 1);  // bits of the largest value
  if (number.category() >= Category::kFloating) {
    const double v = number.to_double();
    const double above = std::ldexp(1.0, bits);
    return v >= (is_unsigned(t) ? 0 : -above) && v < above;
  }
  if (number.is_beyond_int()) return bits == 64;
  const SymInt v = number.to_int();
  if (v >= 0) return bits >= 63 || v < int64_t{1} << bits;
  return bits >= 63 || v >= -(int64_t{1} << bits) + (is_unsigned(t) ? 1 : 0);
}

bool is_bool(const Arg& a) {
  return a.kind == Arg::Kind::kTensor ? a.tensor->dtype == DType::kBool : a.kind == Arg::Kind::kBool;
}

}  // namespace

DType promote_all(std::initializer_list<const Arg*> args) {
  Ranks ranks;
  for (const Arg* a : args) ranks.add(*a);
  const std::optional<DType> common = merge(ranks.dimensioned, merge(ranks.zero_dim, ranks.number));
  return common ? *common : default_float();
}

DType same(const Arg& tensor) {
  return tensor.kind == Arg::Kind::kTensor ? tensor.tensor->dtype : tensor.scalar().dtype();
}

DType require_floating(DType t) { return is_floating(t) ? t : refuse(t); }
DType require_inexact(DType t) { return has_gradients(t) ? t : refuse(t); }
DType require_integral(DType t) { return is_integral(t) ? t : refuse(t); }

DType real_of(const Arg& input) { return to_real(same(input)); }
DType angle(const Arg& input) { return to_real(floating(input)); }

DType view_as_complex(const Arg& input) {
  const DType t = same(input);
  check(ErrorKind::kNotImplemented, is_floating(t),
        "view_as_complex is only supported for floating point tensors, but got a tensor of scalar type: ",
        scalar_type_name(t));
  check(ErrorKind::kNotImplemented, item_size(t) >= 4, "there is no complex dtype with ", name(t), " parts");
  return to_complex(t);
}

DType complex_from_parts(const Arg& real, const Arg& imag) {
  for (const Arg* part : {&real, &imag}) {
    check(ErrorKind::kType, part->kind == Arg::Kind::kTensor, "both parts must be Tensors, got a number");
  }
  const DType a = same(real), b = same(imag);
  check(ErrorKind::kNotImplemented, is_floating(a) && is_floating(b),
        "Expected both inputs to be Half, Float or Double tensors but got ", scalar_type_name(a), " and ",
        scalar_type_name(b));
  check(a == b, "Expected object of scalar type ", scalar_type_name(a), " but got scalar type ", scalar_type_name(b),
        " for second argument");
  check(ErrorKind::kNotImplemented, item_size(a) >= 4, "there is no complex dtype with ", name(a), " parts");
  return to_complex(a);
}

DType not_boolean(const Arg& input) {
  DType t = same(input);
  return t == DType::kBool ? refuse(t) : t;
}

DType not_boolean(const Arg& input, const Arg& other) {
  const DType t = promote(input, other);
  return t == DType::kBool ? refuse(t) : t;
}

DType subtractable(const Arg& input, const Arg& other) {
  check(ErrorKind::kNotImplemented, !is_bool(input) || !is_bool(other),
        "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` "
        "operator instead.");
  check(ErrorKind::kNotImplemented, !is_bool(input) && !is_bool(other),
        "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use "
        "the `~` or `logical_not()` operator instead.");
  return promote(input, other);
}

DType negatable(const Arg& input) {
  check(ErrorKind::kNotImplemented, !is_bool(input),
        "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the "
        "`~` or `logical_not()` operator instead.");
  return same(input);
}

DType shiftable(const Arg& input, const Arg& other) {
  DType t = require_integral(promote(input, other));
  return t == DType::kBool ? refuse(t) : t;
}

DType double_precision_of(DType t) { return is_complex(t) ? DType::kComplex128 : DType::kFloat64; }

DType scaled_by(Scalar factor, DType t, std::string_view parameter) {
  check(factor.category() != Category::kBool || t == DType::kBool, "Boolean ", parameter,
        " only supported for Boolean results.");
  check(!is_integral(t) || factor.category() <= Category::kInteger, "For integral input tensors, argument ", parameter,
        " must not be a floating point number.");
  check(is_complex(t) || factor.is_real(), "For non-complex input tensors, argument ", parameter,
        " must not be a complex number.");
  // As a boolean, in which PyTorch calculates, a negative number would be true and not cancel anything.
  check(t != DType::kBool || factor.category() == Category::kBool || factor.to_int() >= 0,
        "For Boolean results, argument ", parameter, " must not be negative.");
  if (is_integral(t)) check_convertible(factor, t);
  return t;
}

void check_convertible(const Scalar& number, DType t) {
  bool fits = true;
  if (t == DType::kBool) return;
  if (number.category() <= Category::kInteger && !number.is_beyond_int()) {
    const double largest = is_integral(t) ? 0 : largest_of(to_real_or_self(t));
    const int64_t limit = largest < 0x1p63 ? static_cast<int64_t>(largest) : INT64_MAX;
    const SymInt v = number.to_int();
    fits = is_integral(t) ? integer_fits(number, t) : largest >= 0x1p63 || (v <= limit && v >= -limit);
  } else if (is_integral(t)) {
    fits = number.to_complex().imag() == 0 && integer_fits(number, t);
  } else {
    const std::complex<double> value = number.to_complex();
    const double largest = largest_of(to_real_or_self(t));
    auto part_fits = [&](double v) {
      return std::isinf(v) ? t != DType::kFloat8E4m3fn : std::isnan(v) || std::abs(v) <= largest;
    };
    fits = part_fits(value.real()) && (is_complex(t) ? part_fits(value.imag()) : value.imag() == 0);
  }
  check(fits, "value cannot be converted to type ", number_type_name(t), " without overflow, got ", number.to_string());
}

DType require_range(std::optional<SymInt> low, std::optional<SymInt> high, DType t) {
  auto in_range = [t](SymInt v) {
    if (!is_integral(t)) {
      const double largest = largest_of(to_real_or_self(t));
      return largest >= 0x1p63 || (v <= static_cast<int64_t>(largest) && v >= -static_cast<int64_t>(largest));
    }
    if (t == DType::kBool) return v == 0 || v == 1;
    return (!is_unsigned(t) || v >= 0) && integer_fits(Scalar(v), t);
  };
  if (!high) high = std::exchange(low, std::nullopt);  // a single bound is the upper one
  check(!high || low.value_or(0) < *high, "random_ expects 'from' to be less than 'to', but got from=", low.value_or(0),
        " >= to=", high.value_or(0));
  check(in_range(low.value_or(0)), "from is out of bounds for ", scalar_type_name(t), ", got ", low.value_or(0));
  check(!high || in_range(*high - 1), "to - 1 is out of bounds for ", scalar_type_name(t), ", got ",
        high.value_or(1) - 1);
  return t;
}

DType fake_quantize(const Arg& input, int64_t zero_point, int64_t quant_min, int64_t quant_max) {
  check(quant_min <= quant_max, "`quant_min` should be less than or equal to `quant_max`, got ", quant_min, " and ",
        quant_max);
  check(quant_min <= zero_point && zero_point <= quant_max,
        "`zero_point` must be between `quant_min` and `quant_max`, got ", zero_point, ", ", quant_min, " and ",
        quant_max);
  return floating_only(input);
}

DType dequantized(const Arg& input, const Arg& scale, const Arg& zero_point) {
  for (const Arg* arg : {&input, &scale, &zero_point}) {
    const bool is_tensor = arg->kind == Arg::Kind::kTensor;
    if (!is_tensor && !arg->is_number()) continue;
    const DType dtype = is_tensor ? arg->tensor->dtype : arg->scalar().dtype();
    if (is_complex(dtype)) refuse(dtype);
  }
  return DType::kFloat32;
}

DType quantized(const Arg& input, int64_t quant_min, int64_t quant_max, bool is_signed) {
  floating_only(input);
  for (int bits : {8, 16}) {
    const int64_t span = int64_t{1} << bits, lowest = is_signed ? -(span / 2) : 0;
    if (lowest <= quant_min && quant_min <= quant_max && quant_max < lowest + span)
      return bits == 8 ? (is_signed ? DType::kInt8 : DType::kUInt8) : is_signed ? DType::kInt16 : DType::kUInt16;
  }
  fail(ErrorKind::kRuntime, "expected quant_min and quant_max in ascending order in the range of ",
       is_signed ? "int16" : "uint16", ", got ", quant_min, " and ", quant_max);
}

void require_real(DType compute) {
  check(ErrorKind::kNotImplemented, !is_complex(compute), "not implemented for '", scalar_type_name(compute), "'");
}

DType pow(const Arg& input, const Arg& exponent) {
  DType t = promote(input, exponent);
  check(!is_integral(t) || exponent.kind != Arg::Kind::kInt || exponent.integer >= 0,
        "Integers to negative integer powers are not allowed.");
  if (is_integral(t) && exponent.is_number()) check_convertible(exponent.scalar(), t);
  return t;
}

DType div(const Arg& input, const Arg& other, std::optional<std::string_view> rounding_mode) {
  if (!rounding_mode) return floating(input, other);
  check(*rounding_mode == "trunc" || *rounding_mode == "floor",
        "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '", *rounding_mode, "'");
  return promote(input, other);
}

namespace {

// Checks a limit of clamp(), which integers of the dtype `t` must be able to reach. A minimum below the dtype's range
// and a maximum above it have no effect.
void check_limit(const Scalar& number, DType t, bool is_min) {
  if (!is_integral(t) || t == DType::kBool) return;
  const bool is_negative = !number.is_beyond_int() && number.to_int() < 0;
  const bool fits = (!is_unsigned(t) || !is_negative) && integer_fits(number, t);
  check(fits || is_negative == is_min, "Clamp ", is_min ? "min" : "max", " value ", number.to_string(),
        " is outside the representable range of ", scalar_type_name(t));
}

}  // namespace

DType clamp(const Arg& input, const Arg& min, const Arg& max) {
  check(!min.is_none() || !max.is_none(), "At least one of 'min' or 'max' must not be None");
  const DType t = promote(input, min, max);
  if (min.is_number()) check_limit(min.scalar(), t, true);
  if (max.is_number()) check_limit(max.scalar(), t, false);
  return t;
}

DType clamp_min(const Arg& input, const Arg& min) { return clamp(input, min, Arg()); }
DType clamp_max(const Arg& input, const Arg& max) { return clamp(input, Arg(), max); }

DType clamp_compute(DType t, const Scalar& limit) {
  if (!is_integral(t) || t == DType::kBool) return t;
  check(!limit.is_beyond_int() || t == DType::kUInt64, "expected a limit of 64 bits with a sign, got ",
        limit.to_string());
  return item_size(t) < 8 && !integer_fits(limit, DType::kInt32) ? DType::kInt64 : t;
}

DType clamp_compute(DType t, const Arg& limit) { return limit.is_number() ? clamp_compute(t, limit.scalar()) : t; }

DType hardtanh(Scalar min, Scalar max, DType t) {
  check(t != DType::kUInt64 || min.to_double() >= 0, "cannot do hardtanh of uint64 with negative limits");
  check_limit(min, t, true);
  check_limit(max, t, false);
  return t;
}

DType lerp(const Arg& input, const Arg& end, const Arg& weight) {
  if (weight.kind != Arg::Kind::kTensor || weight.tensor->dim() > 0) return equal_inexact(input, end, weight);
  equal_inexact(input, end);
  return promote(input, end, weight);
}

DType masked(const Arg& input, const Arg& mask, const Arg& value) {
  check(is_bool(mask), "masked_fill only supports boolean masks, but got mask with dtype ", name(same(mask)));
  const DType t = same(input);
  check(value.kind != Arg::Kind::kTensor || is_complex(t) || !is_complex(same(value)),
        "value cannot be converted to type ", cpp_type_name(t), " without overflow");
  if (value.is_number()) check_convertible(value.scalar(), t);
  return t;
}

DType masked_value(const Arg& input, const Arg& value) {
  const DType t = same(input);
  if (t != DType::kBool) return t;
  const DType found = promote(input, value);
  return is_floating(found) ? DType::kFloat64 : found;
}

DType where(const Arg& condition, const Arg& input, const Arg& other) {
  check(is_bool(condition) || same(condition) == DType::kUInt8,
        "where expected condition to be a boolean tensor, but got a tensor with dtype ", name(same(condition)));
  const DType t = promote(input, other);
  // A number must be convertible to the result dtype, except to a floating dtype of at most 16 bits, as in PyTorch.
  const bool is_narrow = is_floating(t) && item_size(t) <= 2;
  for (const Arg* arg : {&input, &other}) {
    if (arg->is_number() && !is_narrow) check_convertible(arg->scalar(), t);
  }
  return t;
}

DType isclose(const Arg& input, const Arg& other, double rtol, double atol) {
  check(rtol >= 0, "rtol must be greater than or equal to zero, but got ", rtol);
  check(atol >= 0, "atol must be greater than or equal to zero, but got ", atol);
  const DType common = require_equal({&input, &other});
  const bool whole = rtol == std::trunc(rtol) && atol == std::trunc(atol);
  return is_integral(common) && !whole ? DType::kFloat64 : common;
}

DType require_equal(std::initializer_list<const Arg*> args) {
  std::optional<DType> common;
  for (const Arg* a : args) {
    if (a->kind != Arg::Kind::kTensor) continue;
    if (!common) common = a->tensor->dtype;
    check(*common == a->tensor->dtype, "expected all tensors to have the same dtype, got ", name(*common), " and ",
          name(a->tensor->dtype));
  }
  return common ? *common : default_float();
}

DType given_floating_or(std::optional<DType> given, DType otherwise) {
  DType t = given.value_or(otherwise);
  return is_floating(t) ? t : refuse(t);
}

DType square(const Arg& input) { return same(input) == DType::kBool ? DType::kInt64 : same(input); }

DType given_inexact_or(std::optional<DType> given, DType otherwise) {
  return require_inexact(given.value_or(otherwise));
}

DType bincount(const Arg& weights) {
  if (weights.is_none()) return DType::kInt64;
  require_real(same(weights));
  return same(weights) == DType::kFloat32 ? DType::kFloat32 : DType::kFloat64;
}

DType sum(const Arg& tensor) { return is_integral(same(tensor)) ? DType::kInt64 : same(tensor); }

}  // namespace tt::dtype_rules
