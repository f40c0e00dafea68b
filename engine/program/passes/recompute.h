// Recompute: a pass for activation checkpointing, and for a budget of memory, in a Program of forward and backward.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "engine/schema/program.h"
#include "engine/schema/program_types.h"

namespace tt {

// What a pass has changed.
struct Recomputed {
  size_t calls = 0;        // that compute something again
  int64_t all_bytes = 0;   // of values of forward that backward needs, and
  int64_t kept_bytes = 0;  // those that are kept for it; both 0 without a budget
};

// Computes again, before the backward part reads them, the results of calls that the client has marked
// (Instruction::kRecompute), instead of keeping them. A region is a run of calls with the same mark. Its results that
// later calls of forward read, or the caller, are kept; so are drawn random numbers, and with them their bits, and
// everything that depends on memory that a call writes. With a `budget` below 1, it also computes results of other
// calls again, so that at most this part of the bytes is kept (memory_budget.h); `types` are then those of the Program,
// whose names 1, 2, ... are its inputs. What is computed again may then be computed in parts, so that the peak is
// lower: some values stay for the whole backward part, and what only they need is dropped, and computed once more when
// it is read. `is_backward` says of each instruction whether a backward pass has called it. The bits do not change.
// A call that computes something again has no mark, or both marks if its result is computed once more later, so that
// merge_equal does not make it one with the first call.
Recomputed recompute(const std::vector<bool>& is_backward, const ProgramTypes* types,
                     absl::Span<const TensorMeta* const> inputs, double budget, Program* program);

// Gives all instructions up to the last marked one the same mark, so that the passes that fuse calls do not compute
// what is computed again together with forward.
void mark_forward(Program* program);

// Removes the marks, of which no later pass has a use.
void remove_marks(Program* program);

}  // namespace tt
