// The bodies of pointwise operators that machine code is made from, as instructions. engine/codegen/body_code.py writes
// the table from the operators' declarations.
#pragma once

#include <cstdint>

#include "absl/types/span.h"

namespace tt::cpu {

// a, b and c are the operands in order. Comparisons give a mask, which only kAnd, kOr and kSelect read.
enum class BodyCode : uint8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kMultiplyAdd,       // a * b + c, rounded once; as are the next two
  kMultiplySubtract,  // a * b - c
  kSubtractProduct,   // c - a * b
  kNegate,
  kAbs,
  kSqrt,
  kFloor,
  kCeil,
  kTrunc,
  kRint,
  kMaximum,  // these four as in kernels/common/math/scalar_math.h
  kMinimum,
  kFmax,
  kFmin,
  kLarger,   // a > b ? a : b
  kSmaller,  // a < b ? a : b
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kAnd,
  kOr,
  kSelect,  // a ? b : c
};

// Operands below kFirstNumber are the operator's tensors. Those from kFirstResult on are results of earlier
// instructions. Between them are the operator's numbers, and then the body's constants.
inline constexpr uint8_t kFirstNumber = 4, kFirstResult = 32;
inline constexpr int kMaxBodyTensors = kFirstNumber;

struct BodyInstruction {
  BodyCode code;
  uint8_t args[3];
};

// The last instruction's result is the body's.
struct Body {
  uint16_t op;
  uint8_t num_tensors, num_numbers;
  absl::Span<const BodyInstruction> code;
  absl::Span<const double> constants;
};

// All compiled bodies, ordered by declaration. They compute float and double.
absl::Span<const Body> compiled_bodies();
// The body of an operator; null if it is not compiled.
const Body* body_of(uint16_t op);

}  // namespace tt::cpu
