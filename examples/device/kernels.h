// The kernels of the example device.
#pragma once

#include <vector>

#include "teletensor_device.h"

namespace example {

// By operator name; the strings and the list live as long as the process.
const std::vector<TeletensorDeviceOperator>& operators();

}  // namespace example
