// What the rules infer for a call that a pass would write in place of another.
#pragma once

#include "engine/schema/op.h"
#include "engine/schema/program.h"
#include "engine/schema/program_types.h"

namespace tt {

// Whether the first result of a call with the flags of an instruction has the metadata that the client and later
// instructions expect. The arguments name tensors that `types` knows. False if the rules reject the call. Does not
// throw.
bool has_result(const TensorMeta& expected, const Op& op, Args args, uint8_t flags, const ProgramTypes& types);

}  // namespace tt
