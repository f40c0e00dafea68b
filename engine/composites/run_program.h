// The composites of Programs that the session has defined (engine/session/programs.h).
#pragma once

#include "engine/composites/composites.h"

namespace tt::composites {

// Returns the outputs of the session's Program `number`. Throws Error.
Tensors run_defined(const Tensors& inputs, const Tensors& written, int64_t number);

// Returns the Program before and after each pass, as text in a tensor of bytes.
Tensor explain_defined(const Tensors& inputs, const Tensors& written, int64_t number);

// Returns the calls that backends execute for the Program, as JSON in a tensor of bytes.
Tensor expand_defined(const Tensors& inputs, const Tensors& written, int64_t number);

// One row per Program of the session, as the operator program_counters describes it.
Tensor count_programs();
// The session's windows, as the operator window_counters describes them.
Tensor count_windows();

}  // namespace tt::composites
