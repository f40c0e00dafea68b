// OutOfMemory: the data for an allocation's error message.
//
// Collected under a pool's lock, formatted after it is released.
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
  uint64_t requested = 0;
  uint64_t limit = 0;  // 0: none
  std::optional<SystemMemoryInfo> system;
  AllocatorStats stats;
  uint64_t largest_free = 0;  // largest free block that the request could have used
  bool capturing = false;     // a graph was being captured, so no memory could be released
  bool expandable = false;
  std::vector<Holder> holders;  // holders of the pool's blocks, largest first

  Error error() const;
};

}  // namespace tt
