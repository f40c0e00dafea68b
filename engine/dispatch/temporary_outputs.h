// run_with_temporary_outputs(): for kernels that find errors of values after they have begun to write.
#pragma once

#include "engine/dispatch/dispatcher.h"

namespace tt {

// Runs `kernel` with new outputs, and copies them to the out tensors if it succeeds: a call that fails leaves its
// targets as they were.
void run_with_temporary_outputs(Call& call, Kernel kernel);

}  // namespace tt
