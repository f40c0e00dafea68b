// Ranges of values that operators require, and their errors. check_range refers to them by name.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include "engine/schema/error.h"

namespace tt {

struct ValueRange {
  std::string_view name;
  double low, high;
  const char* message;
};

inline constexpr ValueRange kValueRanges[] = {
    {"probability", 0, 1, "all elements of input should be between 0 and 1"},
    {"target", 0, 1, "all elements of target should be between 0 and 1"},
    {"std", 0, std::numeric_limits<double>::infinity(), "normal expects all elements of std >= 0.0"},
};

// Returns the range's index in kValueRanges. Throws Error for an unknown name.
inline int64_t value_range(std::string_view name) {
  int64_t i = 0;
  for (const ValueRange& range : kValueRanges) {
    if (range.name == name) return i;
    ++i;
  }
  fail(ErrorKind::kValue, "[check_range] unknown range of values: ", name);
}

}  // namespace tt
