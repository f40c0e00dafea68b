// OutOfMemory: what an allocation that failed has to say.
//
// Collected under a pool's lock, put into words after it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/device/segment_source.h"
#include "engine/memory/allocator_stats.h"
#include "engine/schema/device.h"
#include "engine/schema/error.h"

namespace tt {

struct OutOfMemory {
  struct Holder {
    std::string name;  // "session 3"
    uint64_t bytes;
  };

  Device device;
  uint64_t asked = 0;
  uint64_t limit = 0;  // 0: none
  std::optional<SystemMemoryInfo> system;
  AllocatorStats stats;
  uint64_t largest_free = 0;  // block that might have served
  bool capturing = false;     // nothing could be given back
  bool expandable = false;
  std::vector<Holder> holders;  // of the pool's blocks, the largest first

  Error error() const;
};

}  // namespace tt
