// The CPU backend.
#pragma once

#include "engine/dispatch/dispatcher.h"

namespace tt::cpu {

// Registers all CPU kernels at Key::kCPU. Called once, at start.
void register_backend(Dispatcher& dispatcher);

}  // namespace tt::cpu
