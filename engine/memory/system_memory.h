// SystemMemory: segments of host memory from mmap.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <utility>

#include "engine/device/segment_source.h"
#include "engine/memory/host_memory.h"

namespace tt {

// Segments of 2 MiB and more are aligned to huge pages and request them (madvise): a fresh 4 KiB page costs about 1.6
// us, a huge page far less per byte.
//
// With a `read` function, map() returns null if the host would have less than kept_free_memory() available after all
// mapped pages have been written, so that an allocation fails before the kernel ends a process for lack of memory. The
// reading is used for kReadInterval, or until the segments mapped since have used it up.
//
// map() and info() require the pool's lock; unmap() and discard() do not.
class SystemMemory final : public SegmentSource {
 public:
  using Read = std::function<std::optional<HostMemory>()>;

  SystemMemory() = default;
  explicit SystemMemory(Read read) : read_(std::move(read)) {}

  void* map(size_t bytes) override;
  void unmap(void* segment, size_t bytes) override;
  void discard(void* p, size_t bytes) override;
  bool returns_zeroed() const override { return true; }
  std::optional<SystemMemoryInfo> info() override;

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kReadInterval{100};

  bool has_room(size_t bytes);

  const Read read_;
  std::atomic<uint64_t> mapped_{0};
  Clock::time_point read_at_{};
  uint64_t room_ = 0;  // bytes that may still be mapped, as of read_at_ and the segments mapped since
};

}  // namespace tt
