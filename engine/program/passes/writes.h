// Which instructions of a Program write to tensors that exist already.
#pragma once

#include "engine/schema/program.h"

namespace tt {

// Whether the instruction may write in place: to its results, or to an argument.
bool writes_in_place(const Instruction& instruction);
// Whether an instruction of the Program may. Views of one tensor have different names, so such a Program cannot be
// reordered by names.
bool writes_in_place(const Program& program);

}  // namespace tt
