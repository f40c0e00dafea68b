// The CUDA backend, for whoever assembles an engine.
#pragma once

#include "engine/dispatch/dispatcher.h"

namespace tt::cuda {

// Registers its kernels at Key::kCUDA.
void register_backend(Dispatcher& dispatcher);

}  // namespace tt::cuda
