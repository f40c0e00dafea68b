#include "kernels/cuda/runtime/segments.h"

#include <thread>

#include "engine/schema/error.h"
#include "kernels/cuda/runtime/stream.h"

namespace tt::cuda {
namespace {

// Returns when all work in the stream is finished. Polls instead of blocking: a blocking wait would consume a kernel's
// failure, which must be reported to the caller that waits for the kernel's result.
void drain(uintptr_t stream) {
  if (stream == 0) return;
  try {
    const CudaEvent event(CudaStream::replayer_of(stream));
    while (!event.done()) std::this_thread::yield();
  } catch (const Error&) {
    // The device was lost, so no work is running.
  }
}

}  // namespace

void* DeviceMemory::map(size_t bytes) {
  make_current(device_);
  return runtime().allocate(bytes);
}

void DeviceMemory::unmap(void* segment, size_t) {
  GraphReplayer::flush_all();
  make_current(device_);
  runtime().free(segment);
}

std::optional<SystemMemoryInfo> DeviceMemory::info() {
  try {
    SystemMemoryInfo info;
    make_current(device_);
    runtime().memory_info(&info.free, &info.total);
    return info;
  } catch (const Error&) {
    return std::nullopt;  // the device was lost
  }
}

void* PinnedMemory::map(size_t bytes) {
  make_current(device_);
  return runtime().allocate_host(bytes);
}

void PinnedMemory::unmap(void* segment, size_t) {
  GraphReplayer::flush_all();
  runtime().free_host(segment);
}

// Large enough for all memory of the device, which one stream may use. Reserved addresses use no memory.
size_t VirtualMemory::range_bytes() { return total_memory_ + total_memory_ / 8; }

void* VirtualMemory::reserve(size_t bytes) {
  make_current(device_);
  return runtime().reserve(bytes);
}

void VirtualMemory::release(void* range, size_t bytes) {
  make_current(device_);
  runtime().release(range, bytes);
}

bool VirtualMemory::map(void* at, size_t bytes) {
  make_current(device_);
  PhysicalHandle piece;
  if (!runtime().map(at, bytes, &piece)) return false;
  pieces_[at] = piece;
  return true;
}

void VirtualMemory::unmap(void* at, size_t bytes, uintptr_t stream) {
  drain(stream);  // unlike cudaFree, unmapping does not wait for pending work
  make_current(device_);
  auto piece = pieces_.find(at);
  runtime().unmap(at, bytes, piece->second);
  pieces_.erase(piece);
}

}  // namespace tt::cuda
