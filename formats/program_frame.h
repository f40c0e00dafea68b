// decode_program_frame: the instructions of a v1::Frame as a Program. client/session/encode.h has the reverse.
//
// A daemon reads the frames of its clients, and a client the Programs that an earlier process has stored. Checks for
// errors that occur only in frames: unknown operators, counts or inline bytes above the limits, and result names that
// exceed 64 bits. The Program's user checks argument kinds, result counts, and whether names are defined.
#pragma once

#include <cstdint>

#include "engine/schema/program.h"
#include "proto/wire.h"

namespace tt {

struct FrameLimits {
  uint64_t instructions = UINT64_MAX;
  uint64_t reads = UINT64_MAX;
  uint64_t inline_bytes = UINT64_MAX;     // of one argument
  uint64_t results = Program::kMaxNames;  // of one instruction
  uint64_t names = Program::kMaxNames;    // of results
};

// Fills `program`, which must be empty and does not refer to `frame` afterwards: instructions, outputs and releases.
// Allocates nothing once the program's memory is warm. Throws Error; `program` has the instructions before the invalid
// one then.
void decode_program_frame(const v1::Frame& frame, const FrameLimits& limits, Program* program);

}  // namespace tt
