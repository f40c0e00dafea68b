// The operators' rules as functions, generated from the declarations.
#pragma once

#include <cstdint>

#include "engine/schema/op.h"

namespace tt::op_rules {

// The Op::infer of an operator, or null. For the symbolic schema, which has no operator table.
Op::Infer find(uint16_t id);

}  // namespace tt::op_rules
