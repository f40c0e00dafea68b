// Expressions over the sizes of a Program's values, such as 2 * size(%1, 0) + 1: integers that a function has computed
// from sizes while it was traced, and that have other values for inputs of other sizes.
//
// An expression is a list of terms in postfix order. Functions without state; used on any thread.
#pragma once

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"

namespace tt {

struct SizeTerm {
  // kSize pushes the size of a value in a dimension, kConstant a number; the others replace two numbers by one.
  // Division rounds down, and the remainder has the sign of the divisor, as in Python.
  enum class Kind : uint8_t {
    kConstant,
    kSize,
    kAdd,
    kSubtract,
    kMultiply,
    kFloorDivide,
    kModulo,
    kMinimum,
    kMaximum,
    // Of a value, like kSize. Only in what a trace requires of runs (client/session/traced_sizes.h).
    kStride,
    kOffset,
    kIsContiguous,  // 1 or 0
  };
  static constexpr int kKinds = 9;  // that a Program's definition may contain

  Kind kind = Kind::kConstant;
  int64_t number = 0;  // the constant, or the dimension
  uint64_t name = 0;   // of the value in the Program
  bool describes_value() const { return kind == Kind::kSize || static_cast<int>(kind) >= kKinds; }

  friend bool operator==(const SizeTerm&, const SizeTerm&) = default;
};

using SizeExpression = absl::Span<const SizeTerm>;

inline constexpr size_t kMaxSizeTerms = 64;

// Throws Error (ValueError) unless the terms are one expression of at most kMaxSizeTerms terms.
void check_size_expression(SizeExpression terms);

// Requires check_size_expression(). `value_of` returns the number of a term that describes a value, which may be one of
// symbolic/facts.h, and so may the result then. Throws Error
// (ValueError) for a division by zero or a number beyond 64 bits, and what `value_of` throws.
int64_t evaluate(SizeExpression terms, absl::FunctionRef<int64_t(const SizeTerm& term)> value_of);

// For example "size(%1, 0) * 2 + 1". `describe` returns the text of a name.
std::string to_string(SizeExpression terms, absl::FunctionRef<std::string(uint64_t name)> describe);
std::string to_string(SizeExpression terms);

}  // namespace tt
