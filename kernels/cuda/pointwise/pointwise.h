// The CUDA kernel of all operators with a `body:`.
#pragma once

#include "engine/dispatch/dispatcher.h"

namespace tt::cuda {

// Registers the kernel at Key::kCUDA for all operators with a `body:`, and registers the chain kernel.
void register_pointwise(Dispatcher& dispatcher);

// For pow with a common constant exponent, returns the id of the equivalent operator of the base alone, which is exact
// and much faster. Otherwise returns 0.
uint16_t power_of(const ChainStep& step);
// Whether the operator checks for zero divisors when it computes in integers.
bool divides(uint16_t op);
// Runs one step as a kernel. Throws Error.
void run_step(const ChainStep& step, const Tensor& out);

}  // namespace tt::cuda
