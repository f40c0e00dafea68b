// Adds the devices of device libraries to the engine.
#pragma once

#include <memory>
#include <string>

#include "engine/device/devices.h"
#include "engine/dispatch/dispatcher.h"
#include "kernels/plugin/library.h"

namespace tt::plugin {

// Names a device type for the library and adds its devices and kernels. Call at start, before a backend but the CPU's
// has registered kernels. Returns the number of devices; if it is 0, nothing was added. Throws Error with the reason if
// the library cannot be used; it may have been called by then.
int add_library(std::unique_ptr<DeviceLibrary> library, Devices& devices, Dispatcher& dispatcher);

// The library of a device type. Requires that the type has devices.
DeviceLibrary& library_of(DeviceType type);

}  // namespace tt::plugin
