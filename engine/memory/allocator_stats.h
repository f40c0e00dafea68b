// AllocatorStats: counters and current sizes of an allocator.
#pragma once

#include <cstdint>

namespace tt {

// A current number of bytes and its peak.
struct Level {
  uint64_t now = 0;
  uint64_t peak = 0;

  void add(uint64_t bytes) {
    now += bytes;
    if (now > peak) [[unlikely]]
      peak = now;
  }
  void subtract(uint64_t bytes) { now -= bytes; }
};

struct PoolStats {
  Level requested;       // bytes requested for tensors
  Level allocated;       // total size of the allocated blocks
  Level active;          // allocated, plus freed blocks that another stream may still use
  Level inactive_split;  // free blocks next to used ones, so that their segment cannot be released
  Level reserved;        // bytes obtained from the system
};

struct AllocatorStats {
  PoolStats all;
  PoolStats small;  // for segments of small blocks
  PoolStats large;
  uint64_t allocations = 0;
  uint64_t retries = 0;  // allocations that succeeded only after cached memory was released or waited for
  uint64_t out_of_memory = 0;
  uint64_t system_allocations = 0;  // calls to the system (mmap, cudaMalloc, cuMemMap)
  uint64_t system_frees = 0;
  uint64_t limit = 0;  // limit of reserved bytes; 0: none

  PoolStats& of_size(bool is_small) { return is_small ? small : large; }
  void add(Level PoolStats::*what, bool is_small, uint64_t bytes) {
    (all.*what).add(bytes);
    (of_size(is_small).*what).add(bytes);
  }
  void subtract(Level PoolStats::*what, bool is_small, uint64_t bytes) {
    (all.*what).subtract(bytes);
    (of_size(is_small).*what).subtract(bytes);
  }
};

}  // namespace tt
