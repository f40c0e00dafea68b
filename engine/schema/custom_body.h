// Bodies of custom operators: pointwise expressions, as steps that are operators of the generated table.
//
// Pure functions; thread-safe.
#pragma once

#include <vector>

#include "engine/schema/custom_expression.h"
#include "engine/schema/op.h"

namespace tt {

// A step of a body: a pointwise operator of the generated table with all arguments.
struct BodyStep {
  struct Source {
    enum class From : uint8_t { kValue, kArgument, kStep };
    From from = From::kValue;
    size_t index = 0;  // of an argument or an earlier step
    Arg value;
  };
  const Op* op = nullptr;
  std::vector<Source> sources;
};

// The steps of a body for these arguments, of which tensors are not read. The last one computes the result. Strings and
// lists of the steps point into the body and the arguments. Throws Error (ValueError) if the body calls something else
// than pointwise operators.
std::vector<BodyStep> lower_body(const CustomExpression& body, absl::Span<const Param> params, Args args);

// Infers the result of the steps for the arguments `given`. Throws Error.
void infer_steps(absl::Span<const BodyStep> steps, Args given, Inference* out);

}  // namespace tt
