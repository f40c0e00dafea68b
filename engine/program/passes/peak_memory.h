// How much memory the values of a Program take.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "engine/schema/meta.h"
#include "engine/schema/program.h"

namespace tt {

// The bytes of the values that the Program has computed and not dropped, at most, its outputs included. Inputs, what
// the tape saves and the workspaces of kernels are not counted; a result that may share an argument's memory is counted
// as part of the first argument. The other parameters are those of ProgramTypes. Throws Error as it does.
int64_t peak_bytes(const Program& program, absl::Span<const TensorMeta* const> inputs, bool grad_enabled);
// The bytes of all results that the Program's calls store. The same parameters and errors as peak_bytes().
int64_t stored_bytes(const Program& program, absl::Span<const TensorMeta* const> inputs, bool grad_enabled);

}  // namespace tt
