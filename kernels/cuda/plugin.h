// The plug-in's interface: the functions that the daemon looks up in the loaded library. They have C names, which do
// not depend on the compiler.
#pragma once

#include <cstddef>

#include "engine/device/devices.h"
#include "engine/dispatch/dispatcher.h"

extern "C" {

// Returns a digest of the operators that the plug-in was compiled for. The daemon rejects a plug-in whose digest
// differs from its own.
uint64_t teletensor_cuda_digest();

// Adds the GPUs to `devices` and their kernels to `dispatcher`. Returns the number of GPUs. If the number is 0, nothing
// was added and `why`, of `why_size` bytes, is a one-line reason that ends with a zero. Must be called at most once per
// process. Does not throw.
int teletensor_cuda_register(tt::Devices* devices, tt::Dispatcher* dispatcher, char* why, size_t why_size);
}
