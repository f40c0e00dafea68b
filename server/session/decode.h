// decode(): a Frame of the wire as a Program of the engine; encode(): the way back.
//
// Errors that only the wire can have are found here: unknown operators, counts beyond the limits, inline bytes, names
// beyond the last number. Argument kinds, results' counts and names in use are the executor's to check.
#pragma once

#include "engine/program/executor.h"
#include "engine/program/program.h"
#include "proto/wire.h"
#include "server/limits.h"

namespace tt::server {

// Fills `program`, which is cleared first and borrows nothing from `frame`. Allocates nothing once the program's memory
// is warm. Throws ProgramFault, before anything has been executed, on an invalid frame.
void decode(const v1::Frame& frame, const Limits& limits, Program* program);

// Appends the program's instructions, outputs (as reads numbered from 1) and releases to `frame`: decode() gives an
// equal Program. Requires that new results of an instruction have consecutive names, as
// clients' have.
void encode(const Program& program, v1::Frame* frame);

}  // namespace tt::server
