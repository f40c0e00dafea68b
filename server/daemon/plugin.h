// plugin: the CUDA backend, a library that the daemon opens at start where a driver is present.
//
// Its engine is the daemon's own: teletensord holds all of tt_engine and exports it (CMakeLists.txt).
#pragma once

#include "engine/device/devices.h"
#include "engine/dispatch/dispatcher.h"

namespace tt::server {

// Opens the plug-in and has it register GPUs and their kernels; gives how many GPUs. TELETENSOR_CUDA_PLUGIN names the
// library, whatever drivers there are; else it lies in lib/ or lib/teletensor/ beside the program's folder. Where there
// is no GPU in the end, one line in the log says why, and the CPU serves. Once a process; the library stays open.
int open_cuda_plugin(Devices& devices, Dispatcher& dispatcher);

}  // namespace tt::server
