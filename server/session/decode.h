// decode(): converts a Frame of the wire to a Program of the engine, by formats/program_frame.h.
//
// The executor checks argument kinds, result counts, and whether names are in use.
#pragma once

#include <vector>

#include "engine/program/executor.h"
#include "engine/schema/program.h"
#include "proto/wire.h"
#include "server/limits.h"

namespace tt::server {

// Clears and fills `program`, which does not refer to `frame` afterwards. Allocates nothing once the program's memory
// is warm. Throws ProgramFault on an invalid frame, before anything has been executed.
void decode(const v1::Frame& frame, const Limits& limits, Program* program);

// Adds the sizes of a Program's definition. Throws Error if an expression is malformed; check_program() checks the
// rest.
void decode_sizes(const v1::Frame& frame, Program* program);

// Clears and fills `reads` with the frame's reads between instructions. Throws Error if they are invalid.
void decode_scalar_reads(const v1::Frame& frame, const Limits& limits, std::vector<ReadPoint>* reads);

}  // namespace tt::server
