// SegmentSource: allocates a caching pool's segments from the system (mmap, cudaMalloc, ...).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace tt {

struct SystemMemoryInfo {
  uint64_t free;
  uint64_t total;
};

// Called under the pool's lock.
class SegmentSource {
 public:
  virtual ~SegmentSource() = default;
  // Returns 64-byte aligned memory; null if the system has no memory left.
  virtual void* map(size_t bytes) = 0;
  // Whether map() returns zeroed memory.
  virtual bool returns_zeroed() const { return false; }
  // Waits until no queued work can use the segment.
  virtual void unmap(void* segment, size_t bytes) = 0;
  // The system's free and total memory, if known.
  virtual std::optional<SystemMemoryInfo> info() { return std::nullopt; }
};

}  // namespace tt
