#include "kernels/cuda/segments.h"

#include "kernels/cuda/stream.h"

namespace tt::cuda {

void* DeviceMemory::map(size_t bytes) {
  make_current(device_);
  return runtime().allocate(bytes);
}

void DeviceMemory::unmap(void* segment, size_t) {
  make_current(device_);
  runtime().free(segment);
}

void* PinnedMemory::map(size_t bytes) {
  make_current(device_);
  return runtime().allocate_host(bytes);
}

void PinnedMemory::unmap(void* segment, size_t) { runtime().free_host(segment); }

}  // namespace tt::cuda
