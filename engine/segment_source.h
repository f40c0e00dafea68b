// SegmentSource: where a caching pool takes its segments from (mmap, cudaMalloc, ...).
#pragma once

#include <cstddef>

namespace tt {

class SegmentSource {
 public:
  virtual ~SegmentSource() = default;
  // 64-byte aligned; null where the system has no more. Called under the pool's lock.
  virtual void* map(size_t bytes) = 0;
  virtual void unmap(void* segment, size_t bytes) = 0;
};

}  // namespace tt
