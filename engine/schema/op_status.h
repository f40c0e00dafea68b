// Operators whose errors depend on values and which PyTorch reports before the function returns, also on GPUs: `waits` in
// the declarations.
#pragma once

#include "engine/schema/op.h"

namespace tt {

// Whether a call outside of programs waits until its error is known. `args` suit the operator. Generated.
bool waits_for_status(const Op& op, Args args);

}  // namespace tt
