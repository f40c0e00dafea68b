#include "engine/rules/dtype.h"

#include <array>

namespace tt {
namespace {

struct Row {
  std::string_view name;
  size_t size;
  Category category;
};

constexpr std::array<Row, kNumDTypes> kRows = {{
    {"bool", 1, Category::kBool},
    {"uint8", 1, Category::kInteger},
    {"int8", 1, Category::kInteger},
    {"int16", 2, Category::kInteger},
    {"int32", 4, Category::kInteger},
    {"int64", 8, Category::kInteger},
    {"float16", 2, Category::kFloating},
    {"bfloat16", 2, Category::kFloating},
    {"float32", 4, Category::kFloating},
    {"float64", 8, Category::kFloating},
    {"complex64", 8, Category::kComplex},
    {"complex128", 16, Category::kComplex},
}};

const Row& row(DType t) { return kRows[static_cast<size_t>(t)]; }

DType promote_integers(DType a, DType b) {
  // Signed and unsigned of one width meet in the next wider signed type.
  if ((a == DType::kUInt8 && b == DType::kInt8) || (a == DType::kInt8 && b == DType::kUInt8)) return DType::kInt16;
  return a < b ? b : a;
}

DType promote_floats(DType a, DType b) {
  // Neither 16-bit type holds the other.
  bool halves = item_size(a) == 2 && item_size(b) == 2;
  if (halves) return DType::kFloat32;
  return a < b ? b : a;
}

DType promote_complex(DType a, DType b) {
  bool wide = a == DType::kComplex128 || b == DType::kComplex128 || a == DType::kFloat64 || b == DType::kFloat64;
  return wide ? DType::kComplex128 : DType::kComplex64;
}

}  // namespace

size_t item_size(DType t) { return row(t).size; }

std::string_view name(DType t) { return row(t).name; }

std::optional<DType> parse_dtype(std::string_view name) {
  for (int i = 0; i < kNumDTypes; ++i) {
    if (kRows[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

Category category(DType t) { return row(t).category; }

bool is_valid(int64_t number) { return number >= 0 && number <= static_cast<int64_t>(DType::kFloat64); }

DType promote(DType a, DType b) {
  if (a == b) return a;
  Category ca = category(a), cb = category(b);
  if (ca == Category::kComplex || cb == Category::kComplex) return promote_complex(a, b);
  if (ca != cb) return ca < cb ? b : a;
  return ca == Category::kInteger ? promote_integers(a, b) : promote_floats(a, b);
}

bool can_cast(DType from, DType to) { return category(from) <= category(to); }

}  // namespace tt
