// SegmentSource: where a caching pool takes its segments from (mmap, cudaMalloc, ...).
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
  // 64-byte aligned; null where the system has no more.
  virtual void* map(size_t bytes) = 0;
  // Whether what map() returns is zero.
  virtual bool maps_zeros() const { return false; }
  // Waits until nothing that is under way can use it.
  virtual void unmap(void* segment, size_t bytes) = 0;
  // What the system itself says of it; nothing where it says nothing of use.
  virtual std::optional<SystemMemoryInfo> info() { return std::nullopt; }
};

}  // namespace tt
