// The GPUs as devices: their memory behind caching pools, pinned host memory, and streams.
#pragma once

#include <string>

#include "engine/device/devices.h"

namespace tt::cuda {

// Adds every device that the runtime has. Gives how many; where none, `why` says in a line what is missing. Nothing is
// made on a device before its first use. Throws Error where TELETENSOR_ALLOC_CONF or TELETENSOR_CUDA_REPLAY is not
// understood.
int add_devices(Devices& devices, std::string* why);

}  // namespace tt::cuda
