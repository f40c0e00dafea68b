// set_device: lets a Program run on another device than the one for which it was recorded.
#pragma once

#include <optional>

#include "engine/schema/device.h"
#include "engine/schema/program.h"

namespace tt {

// Lets calls that create tensors on `from`, or move them there, use the device `to` instead; without `from`, calls that
// use any device. A call that creates a tensor without naming a device uses the CPU. The inputs decide where the other
// calls run. Does not throw.
void set_device(Program* program, Device to, std::optional<Device> from = std::nullopt);

}  // namespace tt
