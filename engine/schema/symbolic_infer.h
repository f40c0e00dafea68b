// infer() for sizes that are expressions.
#pragma once

#include "engine/schema/op.h"
#include "engine/symbolic/facts.h"

namespace tt {

// Like infer(), by the same rules. Sizes, strides, offsets and integers among the arguments, and those of the results,
// are numbers that stand for integers or expressions of the facts in scope (symbolic/facts.h); nothing else may read
// them. What a rule requires of sizes becomes a guard unless it is known. Throws Error as infer() does,
// NotImplementedError for a custom operator, and symbolic::Undecided for a requirement without an example. What the
// facts have learned before an error stays.
void infer_symbolic(const Op& op, Args args, bool grad_enabled, Inference* out);
// contiguous_strides() of such numbers.
Sizes symbolic_strides(SizesView sizes);

}  // namespace tt
