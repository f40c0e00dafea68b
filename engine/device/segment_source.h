// SegmentSource: allocates a caching pool's segments from the system (mmap, cudaMalloc, ...).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace tt {

struct SystemMemoryInfo {
  uint64_t free;
  uint64_t total;
  uint64_t kept_free = 0;  // bytes of `free` that map() leaves to other processes
};

// Called under the pool's lock, except for unmap() and discard() of memory that the pool does not use.
class SegmentSource {
 public:
  virtual ~SegmentSource() = default;
  // Returns 64-byte aligned memory; null if the system has no memory left.
  virtual void* map(size_t bytes) = 0;
  // Whether map() returns zeroed memory.
  virtual bool returns_zeroed() const { return false; }
  // Waits until no queued work can use the segment.
  virtual void unmap(void* segment, size_t bytes) = 0;
  // Returns the pages of a mapped range to the system; the range stays mapped, and its contents are lost. Does nothing
  // if not supported.
  virtual void discard(void* /*p*/, size_t /*bytes*/) {}
  // The system's free and total memory, if known.
  virtual std::optional<SystemMemoryInfo> info() { return std::nullopt; }
};

}  // namespace tt
