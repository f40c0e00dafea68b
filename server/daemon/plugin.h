// plugin: libraries with devices that the daemon opens at start: the CUDA backend if a driver is present, and the
// device libraries that its operator allows.
//
// Device libraries use the C table of engine/device/teletensor_device.h, and none of the engine's code. The CUDA
// plug-in is a part of this project and is built with the daemon: it replaces whole kernels of the dispatcher, traces,
// and captures graphs, which a stable table would have to describe again. It uses the daemon's engine: teletensord
// links all of tt_engine and exports it (CMakeLists.txt).
#pragma once

#include <string>
#include <vector>

#include "engine/device/devices.h"
#include "engine/dispatch/dispatcher.h"

namespace tt::server {

// Opens the plug-in, which registers GPUs and their kernels. Returns the number of GPUs. If TELETENSOR_CUDA_PLUGIN is
// set, opens the library that it names, without checking for a driver. Otherwise searches lib/ and lib/teletensor/
// beside the program's folder. If there is no GPU, logs one line with the reason, and the CPU is used. Call once per
// process; the library stays open.
int open_cuda_plugin(Devices& devices, Dispatcher& dispatcher);

// Opens device libraries, in the order of `paths`; of a folder all files whose names end in ".so", in the order of
// their names. Returns the number of devices. Logs a warning with the reason for each that cannot be used, and goes on.
// Call once per process, before open_cuda_plugin(); the libraries stay open.
int open_device_libraries(const std::vector<std::string>& paths, Devices& devices, Dispatcher& dispatcher);

}  // namespace tt::server
