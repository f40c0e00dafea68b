// record: what happens at Key::kAutograd: calls that need a gradient are put on the tape.
#pragma once

#include "engine/dispatch/dispatcher.h"

namespace tt::autograd {

// Sets the fallback at Key::kAutograd and the operators of engine/ops/autograd.yaml, for all
// backends. Once, at start.
void register_autograd(Dispatcher& dispatcher);

// The fallback: runs the call below, and makes its results know where they came from. In-place
// calls give the target a new history, and the base of a view too. Throws Error on a write into a
// leaf that requires grad, or into a view of one.
void record(Call& call);

}  // namespace tt::autograd
