// record: the kernel at Key::kAutograd. Records calls that need a gradient on the tape.
#pragma once

#include "engine/dispatch/dispatcher.h"

namespace tt::autograd {

// Registers the fallback at Key::kAutograd and the operators of engine/ops/autograd.yaml for all backends. Called once,
// at start.
void register_autograd(Dispatcher& dispatcher);

// The fallback: runs the next kernel and sets the history of the results. After an in-place call, sets the history of
// the target and, if the target is a view, of its base. Throws Error on a write to a leaf that requires grad, or to a
// view of such a leaf.
void record(Call& call);

}  // namespace tt::autograd
