// Why calls of a Program are not one loop: the conditions of fuse_regions, and their texts for people.
#pragma once

#include <string>

#include "engine/schema/program.h"
#include "engine/schema/program_types.h"

namespace tt {

// Why no loop of fuse_regions contains an instruction as a pointwise call.
enum class NotInLoop : uint8_t {
  kNone,       // a loop may contain it
  kOperator,   // its operator does not compute element by element
  kArguments,  // the call would fail
  kRandom,
  kDtype,
  kRecorded,  // the tape records it
  kSmall,
  kDevice,
};

NotInLoop why_not_in_loop(const Instruction& instruction, const ProgramTypes& types);

// Whether two pointwise calls have results of one layout, so that one loop may compute both.
bool have_equal_results(const Instruction& a, const Instruction& b, const ProgramTypes& types);

// A line for each pair of calls of which one reads a result of the other, and that might be one loop but are not, with
// the reason; also for calls of operators without loops that read or make a value of a loop. `program` is what the
// passes have made, with chains. `reason`: why the passes have made no loops at all; else empty.
std::string explain_fusion(const Program& program, absl::Span<const TensorMeta* const> inputs, bool grad_enabled,
                           const std::string& reason);

}  // namespace tt
