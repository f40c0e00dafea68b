// Memory sources of a device's pools: device memory, pinned host memory, and reserved device addresses to which memory
// is mapped on demand.
#pragma once

#include "absl/container/flat_hash_map.h"
#include "engine/device/address_range_allocator.h"
#include "engine/device/segment_source.h"
#include "engine/schema/device.h"
#include "kernels/cuda/runtime/runtime.h"

namespace tt::cuda {

class DeviceMemory final : public SegmentSource {
 public:
  explicit DeviceMemory(Device device) : device_(device) {}
  void* map(size_t bytes) override;
  void unmap(void* segment, size_t bytes) override;
  std::optional<SystemMemoryInfo> info() override;

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

class VirtualMemory final : public AddressRangeAllocator {
 public:
  VirtualMemory(Device device, uint64_t total_memory) : device_(device), total_memory_(total_memory) {}
  size_t range_bytes() override;
  void* reserve(size_t bytes) override;
  void release(void* range, size_t bytes) override;
  bool map(void* at, size_t bytes) override;
  void unmap(void* at, size_t bytes, uintptr_t stream) override;

 private:
  Device device_;
  uint64_t total_memory_;
  absl::flat_hash_map<void*, PhysicalHandle> pieces_;  // by mapped address
};

}  // namespace tt::cuda
