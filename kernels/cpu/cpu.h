// The CPU backend. Called once, at start.
#pragma once

#include "engine/dispatch/dispatcher.h"

namespace tt::cpu {

// Registers all of its kernels at Key::kCPU.
void register_backend(Dispatcher& dispatcher);

}  // namespace tt::cpu
