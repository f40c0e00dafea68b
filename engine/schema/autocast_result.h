// autocast_result: results that autocast casts, of operators with the policy `float32_to_lower`: PyTorch computes their
// last product in lower precision.
#pragma once

#include <optional>

#include "engine/schema/autocast.h"

namespace tt {

// The dtype to which a result of `dtype` is cast after the call of the rule autocast_rule(op, args, state); nullopt if
// it is not.
std::optional<DType> autocast_result(const Op& op, Args args, const AutocastState& state, DType dtype);

}  // namespace tt
