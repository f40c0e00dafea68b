// expand: replaces a Program that contains backward passes by the calls that backends execute for it.
//
// Runs the Program on tensors without data, on which only the rules are evaluated, with the session's tape. So the
// gradients are those of the tape's formulas, composites consist of the operators that they call, and later passes see
// forward and backward calls alike. The values have the bits of the original Program. No call is recorded at a run, so
// the Program must have no output that requires grad.
#pragma once

#include <optional>
#include <string>

#include "engine/program/passes/recompute.h"
#include "engine/program/program_run.h"
#include "engine/schema/program.h"

namespace tt {

// Whether the Program contains a backward pass.
bool has_backward(const Program& program);

// `memory_budget` is that of recompute(), of which `*recomputed` describes the changes.
// Returns nothing, and sets `*reason`, if a call reads data or cannot be executed on a tensor without data, if the
// inputs are on different devices or have no data themselves, or if an output requires grad. Requires check_program().
std::optional<Program> expand(const Program& program, const ProgramInputs& inputs, double memory_budget,
                              Recomputed* recomputed, std::string* reason);

}  // namespace tt
