// The plug-in's face: what the daemon looks up in the library that it opens. C names, so that any build finds them.
#pragma once

#include <string>

#include "engine/device/devices.h"
#include "engine/dispatch/dispatcher.h"

extern "C" {

// A digest of the operators that the plug-in was made for; another daemon's plug-in is refused by it.
uint64_t teletensor_cuda_digest();

// Adds the GPUs to `devices` and their kernels to `dispatcher`. Gives how many GPUs; where 0, `why` says in a line what
// is missing, and nothing was added. Once a process. Does not throw.
int teletensor_cuda_register(tt::Devices* devices, tt::Dispatcher* dispatcher, std::string* why);
}
