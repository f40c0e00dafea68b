// Anomaly detection: a NaN in a gradient is reported where it first appears.
#pragma once

#include "autograd/node.h"

namespace tt::autograd {

// Throws Error, naming the node and the user's line that it was recorded for, where `gradient`,
// its result `i`, has a NaN. Waits for the value.
void check_not_nan(const Node& node, size_t i, const Tensor& gradient);

}  // namespace tt::autograd
