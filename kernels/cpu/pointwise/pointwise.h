// The CPU kernel of every operator with a `body:`.
#pragma once

#include "engine/dispatch/dispatcher.h"

namespace tt::cpu {

// Registers the kernel at Key::kCPU for all operators with a `body:`, and registers the CPU's chain kernel.
void register_pointwise(Dispatcher& dispatcher);

}  // namespace tt::cpu
