#include "engine/schema/dtype.h"

#include <array>

#include "engine/schema/error.h"

namespace tt {
namespace {

constexpr std::array<std::string_view, kNumDTypes> kNames = {
    "bool",    "uint8",     "int8",       "int16",  "int32",  "int64",  "float16",       "bfloat16",    "float32",
    "float64", "complex64", "complex128", "uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2",
};

constexpr std::array<std::string_view, kNumDTypes> kScalarTypeNames = {
    "Bool",   "Byte",         "Char",          "Short",  "Int",    "Long",   "Half",          "BFloat16",    "Float",
    "Double", "ComplexFloat", "ComplexDouble", "UInt16", "UInt32", "UInt64", "Float8_e4m3fn", "Float8_e5m2",
};

// Whether `t` is uint16, uint32 or uint64. These types promote only with floating types.
bool is_wide_unsigned(DType t) { return t >= DType::kUInt16 && t <= DType::kUInt64; }

DType promote_integers(DType a, DType b) {
  // A signed and an unsigned type of one width promote to the next wider signed type.
  if ((a == DType::kUInt8 && b == DType::kInt8) || (a == DType::kInt8 && b == DType::kUInt8)) return DType::kInt16;
  return a < b ? b : a;
}

DType promote_floats(DType a, DType b) {
  // Neither 16-bit type can represent all values of the other.
  bool halves = item_size(a) == 2 && item_size(b) == 2;
  if (halves) return DType::kFloat32;
  return a < b ? b : a;
}

DType promote_complex(DType a, DType b) {
  bool wide = a == DType::kComplex128 || b == DType::kComplex128 || a == DType::kFloat64 || b == DType::kFloat64;
  return wide ? DType::kComplex128 : DType::kComplex64;
}

}  // namespace

std::string_view name(DType t) { return kNames[static_cast<size_t>(t)]; }

std::string_view cpp_type_name(DType t) {
  switch (t) {
    case DType::kFloat32: return "float";
    case DType::kFloat64: return "double";
    case DType::kInt64: return "long";
    case DType::kInt32: return "int";
    case DType::kFloat16: return "c10::Half";
    case DType::kBFloat16: return "c10::BFloat16";
    case DType::kFloat8E4m3fn: return "c10::Float8_e4m3fn";
    case DType::kFloat8E5m2: return "c10::Float8_e5m2";
    default: return name(t);
  }
}

std::string_view scalar_type_name(DType t) { return kScalarTypeNames[static_cast<size_t>(t)]; }

std::optional<DType> parse_dtype(std::string_view name) {
  for (int i = 0; i < kNumDTypes; ++i) {
    if (kNames[i] == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

DType to_real(DType t) {
  if (t == DType::kComplex64) return DType::kFloat32;
  return t == DType::kComplex128 ? DType::kFloat64 : t;
}

DType to_complex(DType t) {
  if (is_complex(t)) return t;
  check(!is_float8(t), "Unknown Complex ScalarType for ", scalar_type_name(t));
  return t == DType::kFloat64 ? DType::kComplex128 : DType::kComplex64;
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  check(!is_float8(a) && !is_float8(b), "Promotion for Float8 Types is not supported, attempted to promote ",
        scalar_type_name(a), " and ", scalar_type_name(b));
  Category ca = category(a), cb = category(b);
  if (is_wide_unsigned(a) || is_wide_unsigned(b)) {
    check(ca == Category::kFloating || cb == Category::kFloating,
          "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote ", scalar_type_name(a),
          " and ", scalar_type_name(b));
    return ca == Category::kFloating ? a : b;
  }
  if (ca == Category::kComplex || cb == Category::kComplex) return promote_complex(a, b);
  if (ca != cb) return ca < cb ? b : a;
  return ca == Category::kInteger ? promote_integers(a, b) : promote_floats(a, b);
}

bool can_cast(DType from, DType to) { return category(from) <= category(to); }

}  // namespace tt
