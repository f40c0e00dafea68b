// Bytes allocated in the engine, for leak tests.
#pragma once

#include <cstdint>

#include "engine/device/devices.h"
#include "server/daemon/backends.h"

namespace tt::server::testing {

// Starts the engine, once per process.
inline void start_engine() {
  static const bool started = (register_backends(2, 0), true);
  static_cast<void>(started);
}

inline uint64_t engine_bytes() { return Devices::instance().allocator(Device{}).stats().all.requested.now; }

}  // namespace tt::server::testing
