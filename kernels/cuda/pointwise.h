// The CUDA kernel of every operator with a `body:`.
#pragma once

#include "engine/dispatcher.h"

namespace tt::cuda {

// Registers it at Key::kCUDA for all of them, and as the GPU's chain kernel.
void register_pointwise(Dispatcher& dispatcher);

}  // namespace tt::cuda
