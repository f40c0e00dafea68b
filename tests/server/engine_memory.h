// What the engine holds, for tests that nothing stays behind.
#pragma once

#include <cstdint>

#include "engine/device/devices.h"
#include "server/daemon/backends.h"

namespace tt::server::testing {

// Once a process.
inline void start_engine() {
  static const bool started = (register_backends(2, 0), true);
  static_cast<void>(started);
}

inline uint64_t engine_bytes() { return Devices::instance().allocator(Device{}).stats().all.requested.now; }

}  // namespace tt::server::testing
