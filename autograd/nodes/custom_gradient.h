// The gradients of custom operators (engine/schema/custom_operator.h): formulas that are evaluated at run time.
#pragma once

#include <cstdint>

#include "autograd/nodes/gradient.h"

namespace tt::autograd {

// Returns null if the operator is not a custom one or declares no formula. The result lives as long as the process.
// Thread-safe.
const Gradient* find_custom_gradient(uint16_t op);

}  // namespace tt::autograd
