// with_new_results: a kernel for an operator that has effects besides its results, and so cannot be called with out
// tensors.
#pragma once

#include "engine/dispatch/dispatcher.h"
#include "engine/schema/error.h"

namespace tt {

// Throws Error (NotImplementedError) for a call with out tensors, before the kernel has an effect; else runs the
// kernel.
template <Kernel kKernel>
void with_new_results(Call& call) {
  check(ErrorKind::kNotImplemented, !call.into, "this operator does not accept existing results");
  kKernel(call);
}

}  // namespace tt
