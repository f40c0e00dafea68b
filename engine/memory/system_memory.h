// SystemMemory: segments of host memory from mmap.
#pragma once

#include "engine/device/segment_source.h"

namespace tt {

// Segments of 2 MiB and more are aligned to huge pages and request them (madvise): a fresh 4 KiB page costs about 1.6
// us, a huge page far less per byte. Thread-safe.
class SystemMemory final : public SegmentSource {
 public:
  void* map(size_t bytes) override;
  void unmap(void* segment, size_t bytes) override;
  bool returns_zeroed() const override { return true; }
};

}  // namespace tt
