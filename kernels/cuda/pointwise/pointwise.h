// The CUDA kernel of every operator with a `body:`.
#pragma once

#include "engine/dispatch/dispatcher.h"

namespace tt::cuda {

// Registers it at Key::kCUDA for all of them, and as the GPU's chain kernel.
void register_pointwise(Dispatcher& dispatcher);

// x ** n for the exponents that people write, far cheaper than pow, and exact: the operator of x alone that the step
// is. 0 where it is none.
uint16_t power_of(const ChainStep& step);
// Whether it looks for zero divisors when it computes in integers.
bool divides(uint16_t op);
// One step by itself. Throws Error.
void run_step(const ChainStep& step, const Tensor& out);

}  // namespace tt::cuda
