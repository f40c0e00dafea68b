// Registers the CUDA backend. Called when an engine is set up.
#pragma once

#include "engine/dispatch/dispatcher.h"

namespace tt::cuda {

// Registers the CUDA kernels at Key::kCUDA.
void register_backend(Dispatcher& dispatcher);

}  // namespace tt::cuda
