// Shape and dtype rules of custom operators (docs/cpp-operators.md), evaluated for the arguments of a call.
//
// Pure functions; thread-safe. They throw Error: ValueError for a rule that does not fit the arguments, and what
// broadcasting and promotion raise.
#pragma once

#include "engine/schema/custom_expression.h"
#include "engine/schema/op.h"

namespace tt {

// The sizes that a rule gives for a result.
Sizes evaluate_shape(const CustomExpression& rule, absl::Span<const Param> params, Args args);
// The dtype that a rule gives.
DType evaluate_dtype(const CustomExpression& rule, absl::Span<const Param> params, Args args);
// The dtype of a result without a rule: that of all tensors together, or the default one if there are none.
DType promoted_dtype(Args args);

}  // namespace tt
