// overwriting<&f>, updating<&f>: typed kernels as dispatcher Kernels, beside boxed<&f> (engine/dispatch/boxed.h).
//
// `x.fill_(0)` and `x.index_put_(...)` have x as an argument and as the result. boxed<> would compute aside and move
// the result over; these may write x at once. An operator's `landing:` says which one is its kernels'.
#pragma once

#include "engine/dispatch/boxed.h"

namespace tt {

// For a kernel that never reads the tensor it is called on, and writes any layout and dtype.
template <auto F>
void overwriting(Call& call) {
  run_with_separate_outputs(call, &boxing::Boxed<F, decltype(F)>::run);
}

// For a kernel that copies its first tensor and changes elements of the copy: called in place there is nothing to copy,
// and what it does not name is not touched. `f` takes an output of any layout, and finds its first argument there
// already where they are the same (a backend's copy() does nothing then).
template <auto F>
void updating(Call& call) {
  run_with_updated_output(call, &boxing::Boxed<F, decltype(F)>::run);
}

}  // namespace tt
