// The common part of infer(): a single device, accepted dtypes, gradients, valid sizes.
#pragma once

#include "engine/schema/op.h"

namespace tt {

// Completes the results of an operator's own rules. Throws Error.
void infer_common(const Op& op, Args args, bool grad_enabled, Inference* out);

}  // namespace tt
