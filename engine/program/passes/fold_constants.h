// fold_constants: values that depend on no input are computed once per Program, not in every run.
//
//     %3 = ones([8, 8])  %4 = tril(%3)  %5 = eq(%4, 0)        %5 becomes a name that every run is given
//
// An instruction is constant if all its tensors are results of constant instructions. Excluded are calls that draw
// random numbers, read the session's state, write, record gradients or leave memory uninitialised, and results that
// share memory with an output or with a value that is written. On the CPU.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "engine/schema/meta.h"
#include "engine/schema/program.h"
#include "engine/tensor/tensor.h"

namespace tt {

struct Constants {
  // The values of the names that follow the inputs': read-only, and charged to no account (Storage::over()).
  std::vector<Tensor> values;
  uint64_t bytes = 0;      // of their storages
  bool too_large = false;  // nothing was folded, because the values would exceed kMaxBytes

  static constexpr int64_t kMaxValueBytes = int64_t{1} << 20;  // of one result of a constant instruction
  static constexpr int64_t kMaxBytes = int64_t{4} << 20;       // of all values of a Program, and of their storages
};

// Removes the constant instructions from a checked Program with inputs of these types, and renames its results, which
// then follow the names of the constants. Runs the removed instructions on the session's thread, for which its account
// is charged. Leaves the Program as it is if there are none, or if one fails: a run reports the error. Throws Cancelled
// only.
Constants fold_constants(Program* program, absl::Span<const TensorMeta* const> metas, bool grad_enabled);

// The constants as tensors of the current session, whose account is charged for their bytes until the last one is
// destroyed. Throws Error(kOutOfMemory).
std::vector<Tensor> for_session(const Constants& constants);

}  // namespace tt
