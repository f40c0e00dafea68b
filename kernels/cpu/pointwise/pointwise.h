// The CPU kernel of every operator with a `body:`.
#pragma once

#include "engine/dispatch/dispatcher.h"

namespace tt::cpu {

// Registers it at Key::kCPU for all of them, and as the CPU's chain kernel.
void register_pointwise(Dispatcher& dispatcher);

}  // namespace tt::cpu
