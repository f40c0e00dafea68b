// Which instructions of a Program depend on more than their arguments: passes neither merge nor repeat them, do not
// remove them, and keep their order.
#pragma once

#include "engine/schema/program.h"

namespace tt {

// Whether the call draws random numbers, or reads something of the session that other calls change.
bool is_stateful(const Instruction& instruction);

}  // namespace tt
