// inline_bodies: replaces calls of custom operators with a body (engine/schema/custom_operator.h) by the calls of
// pointwise operators that the body consists of, so that later passes see and fuse them like the Program's own.
#pragma once

#include "engine/schema/program.h"

namespace tt {

// Whether the Program calls such an operator.
bool has_bodies(const Program& program);

// Rewrites a checked Program without sizes() in place. A call whose arguments are invalid, or for which there are too
// few names (Program::kMaxNames), stays as it is. Does not throw.
void inline_bodies(Program* program);

}  // namespace tt
