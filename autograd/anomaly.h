// check_not_nan: the check of anomaly detection. Reports the first node that returns a gradient with a NaN.
#pragma once

#include "autograd/nodes/node.h"

namespace tt::autograd {

// Throws Error if `gradient`, result `i` of `node`, has a NaN. The error names the node and the user's source line.
// Waits for the value.
void check_not_nan(const Node& node, size_t i, const Tensor& gradient);

}  // namespace tt::autograd
