// Memory of the example device: host memory whose addresses the CPU cannot use.
//
// An address of the device is the host's address with kTag set, which no pointer of a process has: an access by the CPU
// through it ends the process, as an access to a GPU's memory would.
#pragma once

#include <sys/mman.h>

#include <cstdint>

namespace example {

constexpr uintptr_t kTag = uintptr_t{1} << 62;

template <typename T = char>
T* host_pointer(const void* device_address) {
  return reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(device_address) & ~kTag);
}

// Returns null if the host has no memory left.
inline void* allocate(uint64_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(memory) | kTag);
}

inline void release(void* device_address, uint64_t bytes) { munmap(host_pointer(device_address), bytes); }

}  // namespace example
