// plugin: the CUDA backend, a library that the daemon opens at start if a driver is present.
//
// The plug-in uses the daemon's engine: teletensord links all of tt_engine and exports it (CMakeLists.txt).
#pragma once

#include "engine/device/devices.h"
#include "engine/dispatch/dispatcher.h"

namespace tt::server {

// Opens the plug-in, which registers GPUs and their kernels. Returns the number of GPUs. If TELETENSOR_CUDA_PLUGIN is
// set, opens the library that it names, without checking for a driver. Otherwise searches lib/ and lib/teletensor/
// beside the program's folder. If there is no GPU, logs one line with the reason, and the CPU is used. Call once per
// process; the library stays open.
int open_cuda_plugin(Devices& devices, Dispatcher& dispatcher);

}  // namespace tt::server
