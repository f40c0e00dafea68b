// overwriting<&f>: a typed kernel that never reads the tensor it is called on, as a dispatcher Kernel.
//
// `x.fill_(0)` has x as its argument and as its result. boxed<> would compute aside and move the
// result over; these functions write any layout and dtype, so they may write x at once.
#pragma once

#include "engine/boxed.h"

namespace tt {

template <auto F>
void overwriting(Call& call) {
  run_with_separate_outputs(call, &boxing::Boxed<F, decltype(F)>::run);
}

}  // namespace tt
