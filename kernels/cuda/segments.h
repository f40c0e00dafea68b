// Where the pools of a device take their segments from: its memory, and pinned host memory.
#pragma once

#include "engine/rules/device.h"
#include "engine/segment_source.h"

namespace tt::cuda {

class DeviceMemory final : public SegmentSource {
 public:
  explicit DeviceMemory(Device device) : device_(device) {}
  void* map(size_t bytes) override;
  void unmap(void* segment, size_t bytes) override;

 private:
  Device device_;
};

class PinnedMemory final : public SegmentSource {
 public:
  explicit PinnedMemory(Device device) : device_(device) {}
  void* map(size_t bytes) override;
  void unmap(void* segment, size_t bytes) override;

 private:
  Device device_;
};

}  // namespace tt::cuda
