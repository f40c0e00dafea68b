// updating<&f>: a typed kernel that copies its first tensor and changes elements of the copy, as a
// dispatcher Kernel.
//
// Called in place there is nothing to copy: what it does not name is not touched. `f` takes an output
// of any layout, and finds its first argument there already where they are the same (copy() does
// nothing then).
#pragma once

#include "engine/boxed.h"

namespace tt {

template <auto F>
void updating(Call& call) {
  run_with_updated_output(call, &boxing::Boxed<F, decltype(F)>::run);
}

}  // namespace tt
