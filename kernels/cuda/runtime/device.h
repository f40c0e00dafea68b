// Adds GPUs to the engine's devices, with caching pools for device memory and pinned host memory, and with streams.
#pragma once

#include <string>

#include "engine/device/devices.h"

namespace tt::cuda {

// Adds all devices of the runtime and returns their number. If the number is 0, `why` is a one-line reason. Allocates
// nothing on a device before its first use. Throws Error if TELETENSOR_ALLOC_CONF or TELETENSOR_CUDA_REPLAY is invalid.
int add_devices(Devices& devices, std::string* why);

}  // namespace tt::cuda
