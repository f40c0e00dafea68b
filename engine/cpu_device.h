// The CPU as a device: system memory behind a caching pool, and a stream that is always idle.
#pragma once

#include "engine/devices.h"

namespace tt {

void add_cpu(Devices& devices);

}  // namespace tt
