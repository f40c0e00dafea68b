#include "engine/rules/scalar.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"

namespace tt {

int64_t Scalar::to_int() const {
  if (category_ != Category::kFloating) return int_;
  if (std::isnan(double_)) return 0;
  constexpr double kLimit = 9223372036854775808.0;  // 2^63
  if (double_ >= kLimit) return std::numeric_limits<int64_t>::max();
  if (double_ < -kLimit) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(double_);
}

DType Scalar::dtype() const {
  if (category_ == Category::kBool) return DType::kBool;
  return category_ == Category::kInteger ? DType::kInt64 : kDefaultFloat;
}

std::string Scalar::to_string() const {
  if (category_ == Category::kBool) return int_ ? "True" : "False";
  if (category_ == Category::kInteger) return absl::StrCat(int_);
  char text[32];
  auto end = std::to_chars(text, text + sizeof(text), double_).ptr;  // the shortest that reads back
  return std::string(text, end);
}

}  // namespace tt
