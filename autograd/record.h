// record: the kernel at Key::kAutograd. Records calls that need a gradient on the tape.
#pragma once

#include "engine/dispatch/dispatcher.h"

namespace tt::autograd {

// Registers the fallback at Key::kAutograd and the operators of engine/ops/autograd.yaml for all backends. Called once,
// at start.
void register_autograd(Dispatcher& dispatcher);

// The fallback: runs the next kernel and sets the history of the results. An in-place call gives the target, and the
// base if the target is a view, a new history. Throws Error on a write to a leaf that requires grad or to a view of
// one.
void record(Call& call);

}  // namespace tt::autograd
