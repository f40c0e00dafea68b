// AllocatorStats: what an allocator has done and holds.
#pragma once

#include <cstdint>

namespace tt {

// A number of bytes that comes and goes.
struct Level {
  uint64_t now = 0;
  uint64_t peak = 0;

  void add(uint64_t bytes) {
    now += bytes;
    if (now > peak) [[unlikely]]
      peak = now;
  }
  void take(uint64_t bytes) { now -= bytes; }
};

struct PoolStats {
  Level requested;       // what tensors asked for
  Level allocated;       // the blocks they got
  Level active;          // those, and what is freed but may still be in use in another stream
  Level inactive_split;  // free blocks with others in use beside them: no segment that could be given back
  Level reserved;        // taken from the system
};

struct AllocatorStats {
  PoolStats all;
  PoolStats small;  // of segments for small blocks
  PoolStats large;
  uint64_t allocations = 0;
  uint64_t retries = 0;  // times cached memory was given back, or waited for, before an allocation went through
  uint64_t out_of_memory = 0;
  uint64_t system_allocations = 0;  // calls that reached the system (mmap, cudaMalloc, cuMemMap)
  uint64_t system_frees = 0;
  uint64_t limit = 0;  // what reserved never exceeds; 0: none

  PoolStats& of(bool is_small) { return is_small ? small : large; }
  void add(Level PoolStats::*what, bool is_small, uint64_t bytes) {
    (all.*what).add(bytes);
    (of(is_small).*what).add(bytes);
  }
  void take(Level PoolStats::*what, bool is_small, uint64_t bytes) {
    (all.*what).take(bytes);
    (of(is_small).*what).take(bytes);
  }
};

}  // namespace tt
