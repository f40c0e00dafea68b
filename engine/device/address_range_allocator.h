// AddressRangeAllocator: reserves address ranges and maps memory into parts of them.
//
// Used for segments that grow in place. Called under the pool's lock.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tt {

class AddressRangeAllocator {
 public:
  virtual ~AddressRangeAllocator() = default;
  // Number of bytes to reserve per segment; more than the device's memory.
  virtual size_t range_bytes() = 0;
  // Reserves an address range. Returns null if none is available.
  virtual void* reserve(size_t bytes) = 0;
  virtual void release(void* range, size_t bytes) = 0;  // requires that all pieces are unmapped
  // Maps memory at `at`. Returns false if the system has no memory left.
  virtual bool map(void* at, size_t bytes) = 0;
  // Unmaps a mapped piece after the work queued in `stream` (Stream::id()) is done.
  virtual void unmap(void* at, size_t bytes, uintptr_t stream) = 0;
};

}  // namespace tt
