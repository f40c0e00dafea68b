// overwriting<&f>, updating<&f>, temporary<&f>, laid_out<&f>: wrap typed kernels as dispatcher Kernels, like boxed<&f>
// (engine/dispatch/boxed.h).
//
// `x.fill_(0)` and `x.index_put_(...)` have x as both argument and result. boxed<> computes into a temporary and moves
// it into x; overwriting<> and updating<> may write to x directly. An operator's `out_variant:` selects the wrapper of
// its kernels.
#pragma once

#include "engine/dispatch/boxed.h"

namespace tt {

// Wraps a kernel that never reads the tensor it is called on and can write to any layout and dtype.
template <auto F>
void overwriting(Call& call) {
  run_with_separate_outputs(call, &boxing::Boxed<F, decltype(F)>::run);
}

// Wraps a kernel that copies its first tensor and changes elements of the copy. In an in-place call the copy is
// skipped, and only the changed elements are written. `f` must accept an output of any layout, which may be the same
// tensor as its first argument; the backend's copy() then does nothing.
template <auto F>
void updating(Call& call) {
  run_with_updated_output(call, &boxing::Boxed<F, decltype(F)>::run);
}

// Wraps a kernel that finds errors of values after it has begun to write.
template <auto F>
void temporary(Call& call) {
  run_with_temporary_outputs(call, &boxing::Boxed<F, decltype(F)>::run);
}

// Wraps a kernel that writes new results in the layout that infer() chose, which may be channels last; boxed<> copies
// its contiguous result then. Out tensors are contiguous, as in boxed<>.
template <auto F>
void laid_out(Call& call) {
  run_with_inferred_outputs(call, &boxing::Boxed<F, decltype(F)>::run);
}

}  // namespace tt
