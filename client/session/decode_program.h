// decode_program: the reverse of encode_program(), for a Program that a client has stored itself.
#pragma once

#include "engine/schema/program.h"
#include "proto/wire.h"

namespace tt::client {

// Throws Error (NotImplementedError) for an operator that does not exist, and Error (ValueError) for a frame that
// encode_program() does not write: one with expressions of sizes, or with too many arguments, results or names. Does
// not check that the arguments are valid: ProgramTypes does.
tt::Program decode_program(const v1::Frame& frame);

}  // namespace tt::client
