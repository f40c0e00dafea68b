#include "engine/schema/scalar.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "engine/schema/default_float.h"

namespace tt {
namespace {

// The shortest text that parses to the same value.
std::string shortest(double value) {
  if (std::isnan(value)) return "nan";  // for either sign
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof(text), value).ptr);
}

}  // namespace

SymInt Scalar::to_int() const {
  if (category_ < Category::kFloating) return int_;
  if (std::isnan(double_)) return 0;
  constexpr double kLimit = 9223372036854775808.0;  // 2^63
  if (double_ >= kLimit) return std::numeric_limits<int64_t>::max();
  if (double_ < -kLimit) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(double_);
}

DType Scalar::dtype() const {
  if (category_ == Category::kBool) return DType::kBool;
  if (category_ == Category::kInteger) return beyond_ ? DType::kUInt64 : DType::kInt64;
  return category_ == Category::kFloating ? default_float() : default_complex();
}

std::string Scalar::to_string() const {
  if (category_ == Category::kBool) return int_ ? "True" : "False";
  if (category_ == Category::kInteger)
    return beyond_ ? absl::StrCat(static_cast<uint64_t>(int64_t{int_})) : absl::StrCat(text_of(int_));
  if (category_ == Category::kFloating) return shortest(double_);
  const std::string imaginary = shortest(imaginary_);
  return absl::StrCat("(", shortest(double_), imaginary[0] == '-' ? "" : "+", imaginary, "j)");
}

}  // namespace tt
